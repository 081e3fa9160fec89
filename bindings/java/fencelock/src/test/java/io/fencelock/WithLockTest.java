package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** Work under a lock that nobody waits for in a thread. */
class WithLockTest extends StoreTest {
    private static Throwable failure(CompletableFuture<?> future) {
        return assertThrows(
                        ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS))
                .getCause();
    }

    private void isFree() {
        Wait.until("the lock is free", () -> !lock.isLocked());
        assertEquals(0, Wait.waiting(client));
    }

    @Test
    void theLockIsHeldUntilTheWorkHasEnded() throws Exception {
        CompletableFuture<String> work = new CompletableFuture<>();
        CompletableFuture<Hold> held = new CompletableFuture<>();
        CompletableFuture<String> sold =
                lock.withLockAsync(
                        hold -> {
                            held.complete(hold);
                            return work;
                        });
        assertTrue(held.get(30, TimeUnit.SECONDS).isValid());
        assertTrue(lock.isLocked());
        assertFalse(sold.isDone());
        work.complete("sold");
        assertEquals("sold", sold.get(30, TimeUnit.SECONDS));
        // Released before it was said.
        assertFalse(lock.isLocked());
    }

    @Test
    void workThatFailsReleases() {
        Exception no = new IllegalStateException("no stock");
        assertSame(
                no, failure(lock.withLockAsync(hold -> CompletableFuture.failedFuture(no))));
        isFree();
        assertSame(
                no,
                failure(
                        lock.withLockAsync(
                                hold -> {
                                    throw (IllegalStateException) no;
                                })));
        isFree();
        // A stage that hangs on another wraps what that failed with.
        assertSame(
                no,
                failure(
                        lock.withLockAsync(
                                hold ->
                                        CompletableFuture.failedFuture(new CompletionException(no))
                                                .thenApply(nothing -> nothing))));
        isFree();
        assertInstanceOf(
                NullPointerException.class, failure(lock.withLockAsync(hold -> null)));
        isFree();
    }

    @Test
    void theWaitCanBeBoundedOrCancelled() throws Exception {
        AtomicBoolean begun = new AtomicBoolean();
        try (Hold hold = lock.acquire()) {
            assertTrue(hold.isValid());
            assertInstanceOf(
                    LockTimeoutException.class,
                    failure(
                            lock.withLockAsync(
                                    Duration.ofMillis(20),
                                    mine -> {
                                        begun.set(true);
                                        return mine.releaseAsync();
                                    })));
            CompletableFuture<Void> waiter =
                    lock.withLockAsync(
                            mine -> {
                                begun.set(true);
                                return mine.releaseAsync();
                            });
            Wait.forWaiters(client, 1);
            assertTrue(waiter.cancel(false));
            Wait.forWaiters(client, 0);
        }
        isFree();
        assertFalse(begun.get());
    }

    @Test
    void cancellingWorkThatRunsKeepsTheLockUntilItHasEnded() throws Exception {
        CompletableFuture<Hold> held = new CompletableFuture<>();
        CompletableFuture<Void> work = new CompletableFuture<>();
        CompletableFuture<Void> all =
                lock.withLockAsync(
                        hold -> {
                            held.complete(hold);
                            return work;
                        });
        Hold hold = held.get(30, TimeUnit.SECONDS);
        all.cancel(true);
        assertFalse(work.isDone());
        assertTrue(hold.isValid());
        assertFalse(lock.tryLock());
        work.complete(null);
        isFree();
    }

    @Test
    void cancellingAtAnyMomentLeavesNothingBehind() throws Exception {
        for (int i = 0; i < 200; i++) {
            Hold hold = lock.acquire();
            CompletableFuture<Void> waiter =
                    lock.withLockAsync(mine -> CompletableFuture.completedFuture(null));
            Threads.Run<?> canceller = Threads.start(() -> waiter.cancel(false));
            hold.release();
            canceller.join();
        }
        isFree();
    }

    @Test
    void aLossIsTold() throws Exception {
        CompletableFuture<LossReason> told = new CompletableFuture<>();
        CompletableFuture<String> all =
                lock.withLockAsync(
                        hold -> {
                            client.breakLock(lock.name(), Long.MAX_VALUE);
                            return hold.lost().thenApply(
                                    reason -> {
                                        told.complete(reason);
                                        return "done";
                                    });
                        });
        assertInstanceOf(LockLostException.class, failure(all));
        assertEquals(LossReason.BROKEN, told.get(30, TimeUnit.SECONDS));
        Exception no = new IllegalStateException("no stock");
        Throwable first =
                failure(
                        lock.withLockAsync(
                                hold -> {
                                    client.breakLock(lock.name(), Long.MAX_VALUE);
                                    return hold.lost().thenCompose(
                                            reason -> CompletableFuture.failedFuture(no));
                                }));
        assertSame(no, first);
        assertInstanceOf(LockLostException.class, first.getSuppressed()[0]);
    }
}
