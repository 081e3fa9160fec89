package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Virtual threads, on a JDK that has them, with two carriers: a wait that pinned its carrier would
 * leave none for the holder, and the tests would hang.
 */
@Tag("virtual")
class VirtualThreadTest extends StoreTest {
    private static Method start;

    @BeforeAll
    static void twoCarriers() throws Exception {
        start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        assertEquals("2", System.getProperty("jdk.virtualThreadScheduler.parallelism"));
        assertEquals("2", System.getProperty("jdk.virtualThreadScheduler.maxPoolSize"));
    }

    private record Virtual<T>(Thread thread, FutureTask<T> task) {
        static <T> Virtual<T> start(Callable<T> body) {
            FutureTask<T> task = new FutureTask<>(body);
            try {
                return new Virtual<>((Thread) start.invoke(null, task), task);
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        }

        T join() throws Exception {
            try {
                return task.get(120, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                throw new AssertionError(e.getCause());
            }
        }

        Throwable failure() {
            return assertThrows(
                            ExecutionException.class, () -> task.get(120, TimeUnit.SECONDS))
                    .getCause();
        }
    }

    @Test
    void theTestsKnowAVirtualThread() throws Exception {
        assertTrue(Virtual.start(VirtualThreads::current).join());
        assertFalse(VirtualThreads.current());
    }

    @Test
    void tenThousandWaitOnTwoCarriers() throws Exception {
        int count = Integer.getInteger("fencelock.test.virtual", 10_000);
        lock.lock();
        int[] unguarded = new int[1];
        AtomicInteger inside = new AtomicInteger();
        List<Virtual<?>> waiters = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            waiters.add(
                    Virtual.start(
                            () -> {
                                lock.lock();
                                try {
                                    assertEquals(1, inside.incrementAndGet());
                                    unguarded[0]++;
                                    inside.decrementAndGet();
                                } finally {
                                    lock.unlock();
                                }
                                return null;
                            }));
        }
        Wait.forWaiters(client, count);
        // The carriers are free for others while all of them wait.
        DistributedLock other = client.lock(name("other"));
        assertTrue(
                Virtual.start(
                                () -> {
                                    other.lock();
                                    boolean held = other.isHeldByCurrentThread();
                                    other.unlock();
                                    return held;
                                })
                        .join());
        lock.unlock();
        for (Virtual<?> waiter : waiters) {
            waiter.join();
        }
        assertEquals(count, unguarded[0]);
        assertFalse(lock.isLocked());
    }

    @Test
    void aVirtualThreadReentersAndIsTheOwner() throws Exception {
        Virtual.start(
                        () -> {
                            lock.lock();
                            lock.lock();
                            lock.lockInterruptibly();
                            assertTrue(lock.tryLock());
                            assertTrue(lock.tryLock(1, TimeUnit.SECONDS));
                            assertEquals(5, lock.getHoldCount());
                            long token = lock.token();
                            assertFalse(Virtual.start(lock::tryLock).join());
                            assertFalse(
                                    Virtual.start(() -> lock.tryLock(5, TimeUnit.MILLISECONDS))
                                            .join());
                            assertInstanceOf(
                                    NotHeldException.class,
                                    Virtual.start(
                                                    () -> {
                                                        lock.unlock();
                                                        return null;
                                                    })
                                            .failure());
                            for (int i = 0; i < 5; i++) {
                                lock.unlock();
                            }
                            assertThrows(NotHeldException.class, lock::unlock);
                            lock.lock();
                            assertNotEquals(token, lock.token());
                            lock.unlock();
                            return null;
                        })
                .join();
    }

    @Test
    void interruptsEndTheWaits() throws Exception {
        lock.lock();
        List<Virtual<?>> waiters = new ArrayList<>();
        waiters.add(
                Virtual.start(
                        () -> {
                            lock.lockInterruptibly();
                            return null;
                        }));
        waiters.add(Virtual.start(() -> lock.tryLock(1, TimeUnit.HOURS)));
        waiters.add(Virtual.start(() -> lock.acquire()));
        waiters.add(Virtual.start(() -> lock.acquire(Duration.ofHours(1))));
        Virtual<Boolean> stubborn =
                Virtual.start(
                        () -> {
                            lock.lock();
                            lock.unlock();
                            return Thread.interrupted();
                        });
        Wait.forWaiters(client, 5);
        stubborn.thread().interrupt();
        waiters.forEach(waiter -> waiter.thread().interrupt());
        for (Virtual<?> waiter : waiters) {
            assertInstanceOf(InterruptedException.class, waiter.failure());
        }
        Wait.forWaiters(client, 1);
        lock.unlock();
        assertTrue(stubborn.join());
    }

    @Test
    void aStormOfInterruptsLeavesNothingBehind() throws Exception {
        AtomicInteger ends = new AtomicInteger();
        List<Virtual<?>> workers = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            workers.add(
                    Virtual.start(
                            () -> {
                                for (int round = 0; round < 20; round++) {
                                    try {
                                        lock.acquire().close();
                                    } catch (InterruptedException e) {
                                        assertEquals(0, lock.getHoldCount());
                                    }
                                    ends.incrementAndGet();
                                }
                                return null;
                            }));
        }
        for (int i = 0; ends.get() < 1000; i++) {
            workers.get(i % workers.size()).thread().interrupt();
            Thread.onSpinWait();
        }
        for (Virtual<?> worker : workers) {
            worker.join();
        }
        Wait.forWaiters(client, 0);
        assertTrue(lock.tryLock(30, TimeUnit.SECONDS));
        lock.unlock();
    }

    @Test
    void everyCallWorksWithoutPinning() throws Exception {
        Virtual.start(
                        () -> {
                            FencelockClient own = another();
                            DistributedLock mine = own.lock(name("mine"));
                            assertTrue(own.ping().toEpochMilli() > 0);
                            try (Hold hold = mine.acquire(Duration.ofSeconds(10))) {
                                hold.extend(Duration.ofMinutes(1));
                                assertTrue(mine.isLocked());
                                assertTrue(own.inspect(mine.name()).isPresent());
                                assertTrue(own.list(mine.name(), 5).contains(mine.name()));
                                assertNull(mine.nonReentrant().tryAcquire());
                                assertThrows(
                                        LockTimeoutException.class,
                                        () -> mine.nonReentrant().acquire(Duration.ofMillis(5)));
                            }
                            Hold broken = mine.acquire();
                            assertEquals(1, own.breakLock(mine.name(), Long.MAX_VALUE).ended());
                            broken.lost().get();
                            assertThrows(LockLostException.class, broken::release);
                            if (own.capabilities().owners()) {
                                DistributedLock owned = mine.withOwner(Owner.of("travels"));
                                Hold here = owned.acquire();
                                own.attach(here.ticket()).close();
                                here.close();
                            }
                            own.close(Duration.ofSeconds(5));
                            assertThrows(ClientClosedException.class, mine::lock);
                            return null;
                        })
                .join();
    }

    @Test
    void readersAndTakersOfPermitsParkToo() throws Exception {
        assumeTrue(client.capabilities().shared() && client.capabilities().permits());
        DistributedReadWriteLock prices = client.readWriteLock(lock.name());
        DistributedSemaphore mailers = client.semaphore(name("mailers"), 2);
        int count = 60;
        Hold writing = prices.writeLock().acquire();
        Permit both = mailers.acquire(2);
        CountDownLatch together = new CountDownLatch(count);
        AtomicInteger mailing = new AtomicInteger();
        List<Virtual<?>> waiters = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            waiters.add(
                    Virtual.start(
                            () -> {
                                prices.readLock().lock();
                                together.countDown();
                                assertTrue(together.await(60, TimeUnit.SECONDS));
                                prices.readLock().unlock();
                                return null;
                            }));
            waiters.add(
                    Virtual.start(
                            () -> {
                                try (Permit permit = mailers.acquire()) {
                                    assertTrue(mailing.incrementAndGet() <= 2);
                                    Thread.yield();
                                    mailing.addAndGet(-permit.permits());
                                }
                                return null;
                            }));
        }
        Wait.forWaiters(client, 2 * count);
        // A carrier is free while all of them wait.
        assertEquals(0, Virtual.start(mailers::availablePermits).join());
        Virtual<?> interrupted = Virtual.start(() -> mailers.acquire(2));
        Wait.forWaiters(client, 2 * count + 1);
        interrupted.thread.interrupt();
        assertInstanceOf(InterruptedException.class, interrupted.failure());
        writing.close();
        both.close();
        for (Virtual<?> waiter : waiters) {
            waiter.join();
        }
        // A place in the store's queue that nobody needed any more may have been granted first.
        Wait.until("all are back", () -> mailers.availablePermits() == 2);
        assertFalse(lock.isLocked());
    }

    @Test
    void aCloseWakesThemAll() throws Exception {
        lock.lock();
        List<Virtual<?>> waiters = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            waiters.add(
                    Virtual.start(
                            () -> {
                                lock.lock();
                                return null;
                            }));
        }
        Wait.forWaiters(client, 100);
        client.close();
        for (Virtual<?> waiter : waiters) {
            assertInstanceOf(ClientClosedException.class, waiter.failure());
        }
    }
}
