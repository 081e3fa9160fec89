package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A store that takes requests and answers none. */
class SilentStoreTest {
    @Test
    void anInterruptEndsATry() throws Exception {
        try (RedisServer server = RedisServer.start();
                FencelockClient client =
                        FencelockClient.builder(server.url())
                                .requestTimeout(Duration.ofMinutes(5))
                                .connect()) {
            DistributedLock lock = client.lock("locked");
            DistributedLock other = client.lock("held");
            server.stop();
            interrupted(client, () -> lock.tryLock(0, TimeUnit.SECONDS));
            interrupted(client, () -> other.acquire(Duration.ZERO));
            server.resume();
            lock.lock();
            assertEquals(1, lock.getHoldCount());
            lock.unlock();
        }
    }

    @Test
    void aWaitShorterThanARoundTripIsInVainAndLeavesNothing() throws Exception {
        try (RedisServer server = RedisServer.start();
                FencelockClient client =
                        FencelockClient.builder(server.url())
                                .requestTimeout(Duration.ofMinutes(5))
                                .connect()) {
            DistributedLock lock = client.lock("free");
            server.stop();
            assertFalse(lock.tryLock(1, TimeUnit.NANOSECONDS));
            assertFalse(lock.tryLock(1, TimeUnit.MILLISECONDS));
            assertNull(lock.tryAcquire(Duration.ofMillis(20)));
            assertNull(lock.tryAcquireAsync(Duration.ofMillis(20)).get());
            assertThrows(LockTimeoutException.class, () -> lock.acquire(Duration.ofMillis(20)));
            server.resume();
            // What was granted too late was given back.
            Wait.until("the lock is free", () -> !lock.isLocked());
            assertTrue(lock.tryLock(30, TimeUnit.SECONDS));
            lock.unlock();
        }
    }

    @Test
    void aStoreThatIsDownIsUnavailable() throws Exception {
        try (RedisServer server = RedisServer.start();
                FencelockClient client = FencelockClient.connect(server.url())) {
            DistributedLock lock = client.lock("away");
            server.kill();
            Wait.until(
                    "the connection is known to be down",
                    () -> {
                        try {
                            return lock.tryLock(1, TimeUnit.MILLISECONDS);
                        } catch (StoreUnavailableException e) {
                            return true;
                        }
                    });
            assertThrows(
                    StoreUnavailableException.class,
                    () -> lock.tryLock(20, TimeUnit.MILLISECONDS));
        }
    }

    private static void interrupted(FencelockClient client, Callable<?> attempt) {
        Threads.Run<?> run = Threads.start(attempt);
        Wait.forWaiters(client, 1);
        run.thread.interrupt();
        assertInstanceOf(InterruptedException.class, run.failure());
        Wait.forWaiters(client, 0);
    }
}
