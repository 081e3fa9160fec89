package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The native side's own count of handles returns to what it was. */
class LeakTest extends StoreTest {
    @Test
    void nothingIsLeftBehind() throws Exception {
        // What earlier tests left to the garbage collector.
        long[] before = {Long.MAX_VALUE};
        int[] same = {0};
        Wait.until(
                "the count is steady",
                () -> {
                    System.gc();
                    Thread.sleep(20);
                    long now = Native.liveHandles();
                    same[0] = now == before[0] ? same[0] + 1 : 0;
                    before[0] = now;
                    return same[0] == 5;
                });
        for (int i = 0; i < 20; i++) {
            everything(i);
        }
        assertTrue(Native.liveHandles() >= before[0], "the count is one");
        Wait.until(
                "handles: " + before[0] + " at first",
                () -> {
                    System.gc();
                    Thread.sleep(20);
                    return Native.liveHandles() <= before[0];
                });
    }

    private void everything(int round) throws Exception {
        FencelockClient other = another();
        DistributedLock own = other.lock(name("own" + round));
        own.lock();
        own.lock();
        own.unlock();
        own.unlock();
        DistributedLock nervous = own.withInterruptOnLoss().withLease(Duration.ofSeconds(20));
        nervous.lock();
        nervous.unlock();
        try (Hold hold = own.acquire()) {
            hold.lost();
            hold.wanted();
            hold.extend(Duration.ofMinutes(1));
            List<CompletableFuture<Hold>> waiters = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                waiters.add(own.acquireAsync());
            }
            assertNull(own.tryAcquireAsync().get());
            Threads.Run<?> interrupted = Threads.start(() -> own.tryLock(1, TimeUnit.HOURS));
            Wait.forWaiters(other, 6);
            interrupted.thread.interrupt();
            interrupted.failure();
            waiters.forEach(waiter -> waiter.cancel(false));
            other.inspect(own.name());
            other.list(own.name(), 10);
            other.ping();
            other.pingAsync().get();
            other.inspectAsync(own.name()).get();
            other.listAsync(own.name(), 10).get();
        }
        own.acquireAsync().get().releaseAsync().get();
        DistributedLock lost = other.lock(name("lost" + round));
        Hold broken = lost.acquire();
        CompletableFuture<LossReason> told = broken.lost();
        lost.lock();
        other.breakLock(lost.name(), Long.MAX_VALUE);
        told.get();
        assertThrows(LockLostException.class, broken::close);
        assertThrows(LockLostException.class, lost::unlock);
        // Left held: the client goes with all that it has.
        own.lock();
        lost.acquire();
        other.close();
    }
}
