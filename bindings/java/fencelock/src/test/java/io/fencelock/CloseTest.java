package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Closing: before, during and after other calls, and from other threads. */
class CloseTest extends StoreTest {
    @Test
    void everythingAfterTheCloseSaysSo() throws Exception {
        Hold hold = lock.acquire();
        DistributedLock locked = client.lock(name("locked"));
        locked.lock();
        client.close();
        client.close();
        assertTrue(client.isClosed());
        assertThrows(ClientClosedException.class, lock::lock);
        assertThrows(ClientClosedException.class, lock::tryLock);
        assertThrows(ClientClosedException.class, lock::acquire);
        assertThrows(ClientClosedException.class, lock::isLocked);
        assertThrows(ClientClosedException.class, client::ping);
        assertThrows(ClientClosedException.class, () -> client.inspect("x"));
        assertThrows(ClientClosedException.class, () -> client.list("", 1));
        assertThrows(ClientClosedException.class, () -> client.breakLock("x", 1));
        assertFalse(hold.isValid());
        assertFalse(locked.isHeldByCurrentThread());
        assertThrows(LockLostException.class, hold::check);
        assertThrows(FencelockException.class, hold::close);
        assertThrows(FencelockException.class, locked::unlock);
        hold.close();
        assertTrue(client.toString().contains("closed"));
        assertFalse(client.id().isEmpty());
        assertTrue(client.metrics().contains("fencelock_"));
    }

    @Test
    void waitersAreToldAndHoldersLoseTheirHold() throws Exception {
        Hold hold = lock.nonReentrant().acquire();
        CompletableFuture<LossReason> lost = hold.lost();
        List<Threads.Run<?>> waiters = new ArrayList<>();
        waiters.add(
                Threads.start(
                        () -> {
                            lock.lock();
                            return null;
                        }));
        waiters.add(Threads.start(() -> lock.tryLock(1, TimeUnit.HOURS)));
        waiters.add(Threads.start(() -> lock.acquire()));
        CompletableFuture<Hold> future = lock.acquireAsync();
        Wait.forWaiters(client, 4);
        client.close();
        for (Threads.Run<?> waiter : waiters) {
            assertInstanceOf(ClientClosedException.class, waiter.failure());
        }
        ExecutionException failure =
                assertThrows(ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS));
        assertInstanceOf(ClientClosedException.class, failure.getCause());
        assertEquals(LossReason.CLOSED, lost.get(30, TimeUnit.SECONDS));
        try (FencelockClient other = another()) {
            assertTrue(other.lock(lock.name()).tryLock(30, TimeUnit.SECONDS));
            other.lock(lock.name()).unlock();
        }
    }

    @Test
    void aDrainWaitsForTheHolds() throws Exception {
        Hold hold = lock.acquire();
        CompletableFuture<Void> closed = client.closeAsync(Duration.ofSeconds(30));
        Wait.until(
                "new ones are refused",
                () -> {
                    try {
                        Hold more = client.lock(name("more")).tryAcquire();
                        more.close();
                        return false;
                    } catch (ClientClosedException e) {
                        return true;
                    }
                });
        assertFalse(closed.isDone());
        assertTrue(hold.isValid());
        hold.release();
        closed.get(30, TimeUnit.SECONDS);
        assertTrue(client.isClosed());
    }

    @Test
    void aDrainThatTakesTooLongClosesAllTheSame() throws Exception {
        Hold hold = lock.acquire();
        assertThrows(LockTimeoutException.class, () -> client.close(Duration.ofMillis(50)));
        assertTrue(client.isClosed());
        assertFalse(hold.isValid());
        assertThrows(FencelockException.class, hold::release);
    }

    @Test
    void aDrainOfZeroOrBelowDoesNotWaitAndLosesTheHolds() throws Exception {
        for (Duration none : List.of(Duration.ZERO, Duration.ofSeconds(-1))) {
            FencelockClient closing = another();
            Hold hold = closing.lock(name("lost")).acquire();
            CompletableFuture<LossReason> lost = hold.lost();
            closing.close(none);
            assertTrue(closing.isClosed());
            assertEquals(LossReason.CLOSED, lost.get(30, TimeUnit.SECONDS));
        }
    }

    @Test
    void aWaitAndADrainWithoutEndGoOn() throws Exception {
        Duration endless = Duration.ofSeconds(Long.MAX_VALUE);
        Hold held = lock.acquire(endless);
        Threads.Run<?> waiter =
                Threads.start(
                        () -> {
                            assertTrue(lock.tryLock(Long.MAX_VALUE, TimeUnit.DAYS));
                            lock.unlock();
                            return null;
                        });
        CompletableFuture<Void> future =
                lock.acquireAsync(endless).thenCompose(Hold::releaseAsync);
        Wait.forWaiters(client, 2);
        CompletableFuture<Void> closed = client.closeAsync(endless);
        assertFalse(closed.isDone());
        held.release();
        waiter.join();
        future.get(30, TimeUnit.SECONDS);
        closed.get(30, TimeUnit.SECONDS);
        assertTrue(client.isClosed());
    }

    @Test
    void closingUnderLoadCrashesNothing() throws Exception {
        for (int round = 0; round < 5; round++) {
            FencelockClient busy = another();
            DistributedLock hot = busy.lock(name("hot"));
            List<Threads.Run<?>> workers = new ArrayList<>();
            for (int i = 0; i < 24; i++) {
                int way = i % 4;
                workers.add(
                        Threads.start(
                                () -> {
                                    for (; ; ) {
                                        try {
                                            if (way == 0) {
                                                hot.lock();
                                                hot.lock();
                                                hot.unlock();
                                                hot.unlock();
                                            } else if (way == 1) {
                                                hot.acquire().close();
                                            } else if (way == 2) {
                                                Hold hold = hot.acquireAsync().get();
                                                hold.lost();
                                                hold.releaseAsync().get();
                                            } else {
                                                hot.tryLock(1, TimeUnit.MILLISECONDS);
                                                hot.isHeldByCurrentThread();
                                                busy.metrics();
                                                hot.unlock();
                                            }
                                        } catch (ClientClosedException e) {
                                            return null;
                                        } catch (LockLostException
                                                | NotHeldException
                                                | StoreUnavailableException e) {
                                            // Lost by the close, or not got in a millisecond.
                                        } catch (ExecutionException e) {
                                            if (e.getCause() instanceof ClientClosedException) {
                                                return null;
                                            }
                                            assertInstanceOf(
                                                    LockLostException.class, e.getCause());
                                        }
                                    }
                                }));
            }
            Wait.until(
                    "they are at it",
                    () -> busy.metrics().contains("fencelock_hold_seconds_count")
                            && Wait.waiting(busy) > 3);
            Threads.all(
                    3,
                    () -> {
                        busy.close();
                        return null;
                    });
            workers.forEach(Threads.Run::join);
        }
    }

    @Test
    void holdsAreUsedByManyThreadsAtOnce() throws Exception {
        for (int round = 0; round < 20; round++) {
            Hold hold = lock.acquire();
            Threads.all(
                    8,
                    () -> {
                        hold.isValid();
                        hold.remaining();
                        hold.isWanted();
                        try {
                            hold.lost();
                            hold.check();
                            hold.release();
                            return true;
                        } catch (NotHeldException | InvalidArgumentException e) {
                            return false;
                        }
                    });
            assertFalse(hold.isValid());
            assertFalse(lock.isLocked());
        }
    }
}
