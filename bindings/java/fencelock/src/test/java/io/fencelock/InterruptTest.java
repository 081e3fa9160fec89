package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Interrupts before, during and after every call. */
class InterruptTest extends StoreTest {
    @AfterEach
    void forgetInterrupt() {
        Thread.interrupted();
    }

    /** What an interrupt ends. */
    private Map<String, Callable<?>> interruptible() {
        return Map.of(
                "lockInterruptibly",
                () -> {
                    lock.lockInterruptibly();
                    return null;
                },
                "tryLock",
                () -> lock.tryLock(1, TimeUnit.HOURS),
                "acquire",
                () -> lock.acquire(),
                "acquire bounded",
                () -> lock.acquire(Duration.ofHours(1)));
    }

    @Test
    void anEarlierInterruptEndsTheCallAndNothingIsHeld() {
        interruptible()
                .forEach(
                        (name, call) -> {
                            Thread.currentThread().interrupt();
                            assertThrows(InterruptedException.class, call::call, name);
                            assertFalse(Thread.interrupted(), name);
                            assertEquals(0, lock.getHoldCount(), name);
                        });
        assertFalse(lock.isLocked());
    }

    @Test
    void anEarlierInterruptEndsAlsoAReentry() {
        lock.lock();
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, lock::lockInterruptibly);
        assertEquals(1, lock.getHoldCount());
        lock.unlock();
    }

    @Test
    void anInterruptEndsTheWaitAndLeavesTheQueue() throws Exception {
        try (Hold hold = lock.acquire()) {
            interruptible()
                    .forEach(
                            (name, call) -> {
                                AtomicBoolean flag = new AtomicBoolean(true);
                                Threads.Run<?> waiter =
                                        Threads.start(
                                                () -> {
                                                    try {
                                                        return call.call();
                                                    } finally {
                                                        flag.set(Thread.interrupted());
                                                    }
                                                });
                                Wait.forWaiters(client, 1);
                                waiter.thread.interrupt();
                                assertInstanceOf(
                                        InterruptedException.class, waiter.failure(), name);
                                assertFalse(flag.get(), name);
                                Wait.forWaiters(client, 0);
                            });
            assertTrue(hold.isValid());
        }
        assertTrue(lock.tryLock(30, TimeUnit.SECONDS));
        lock.unlock();
    }

    @Test
    void lockWaitsOnAndKeepsTheInterrupt() throws Exception {
        Hold hold = lock.nonReentrant().acquire();
        Threads.Run<Boolean> waiter =
                Threads.start(
                        () -> {
                            lock.lock();
                            boolean interrupted = Thread.interrupted();
                            assertTrue(lock.isHeldByCurrentThread());
                            lock.unlock();
                            return interrupted;
                        });
        Wait.forWaiters(client, 1);
        waiter.thread.interrupt();
        Wait.until("the interrupt has arrived", waiter.thread::isInterrupted);
        assertEquals(1, Wait.waiting(client));
        hold.close();
        assertTrue(waiter.join());
    }

    @Test
    void whatCannotBeInterruptedKeepsTheInterrupt() throws Exception {
        Thread.currentThread().interrupt();
        assertTrue(lock.tryLock());
        assertTrue(Thread.currentThread().isInterrupted());
        lock.lock();
        assertTrue(lock.isLocked());
        lock.unlock();
        lock.unlock();
        assertTrue(Thread.interrupted());
        Hold hold = lock.acquire();
        Thread.currentThread().interrupt();
        hold.extend(Duration.ofMinutes(1));
        client.ping();
        assertTrue(client.inspect(lock.name()).isPresent());
        hold.release();
        Hold tried = lock.tryAcquire();
        tried.close();
        assertTrue(Thread.interrupted());
    }

    @Test
    void theNextInLineIsServedWhenOneGivesUp() throws Exception {
        lock.lock();
        Threads.Run<?> first =
                Threads.start(
                        () -> {
                            lock.lockInterruptibly();
                            return null;
                        });
        Wait.forWaiters(client, 1);
        Threads.Run<Boolean> second = Threads.start(() -> lock.tryLock(1, TimeUnit.HOURS));
        Wait.forWaiters(client, 2);
        first.thread.interrupt();
        assertInstanceOf(InterruptedException.class, first.failure());
        lock.unlock();
        assertTrue(second.join());
    }

    @Test
    void aStormOfInterruptsLeavesNothingBehind() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger grants = new AtomicInteger();
        AtomicInteger interrupts = new AtomicInteger();
        AtomicBoolean over = new AtomicBoolean();
        List<Threads.Run<?>> workers = new ArrayList<>();
        for (int worker = 0; worker < 6; worker++) {
            int way = worker % 3;
            workers.add(
                    Threads.start(
                            () -> {
                                for (int i = 0; i < 100; i++) {
                                    try {
                                        if (way == 0) {
                                            lock.lockInterruptibly();
                                        } else if (way == 1) {
                                            assertTrue(lock.tryLock(1, TimeUnit.HOURS));
                                        } else {
                                            lock.acquire().close();
                                            grants.incrementAndGet();
                                            continue;
                                        }
                                    } catch (InterruptedException e) {
                                        interrupts.incrementAndGet();
                                        assertEquals(0, lock.getHoldCount());
                                        continue;
                                    }
                                    grants.incrementAndGet();
                                    assertEquals(1, inside.incrementAndGet());
                                    inside.decrementAndGet();
                                    lock.unlock();
                                }
                                return null;
                            }));
        }
        Threads.Run<?> storm =
                Threads.start(
                        () -> {
                            for (int i = 0; !over.get(); i++) {
                                workers.get(i % workers.size()).thread.interrupt();
                                LockSupport.parkNanos(20_000L * (i % 7));
                            }
                            return null;
                        });
        workers.forEach(Threads.Run::join);
        over.set(true);
        storm.join();
        assertEquals(600, grants.get() + interrupts.get());
        assertTrue(interrupts.get() > 0, "no interrupt hit");
        Wait.forWaiters(client, 0);
        assertTrue(lock.tryLock(30, TimeUnit.SECONDS));
        lock.unlock();
    }

    @Test
    void aDumpSaysWhatAThreadWaitsFor() {
        lock.lock();
        interruptible()
                .forEach(
                        (name, wait) -> {
                            Threads.Run<?> waiter = Threads.start(wait);
                            rests(waiter, name);
                            waiter.thread.interrupt();
                            assertInstanceOf(
                                    InterruptedException.class, waiter.failure(), name);
                        });
        Threads.Run<?> waiter =
                Threads.start(
                        () -> {
                            lock.lock();
                            lock.unlock();
                            return null;
                        });
        rests(waiter, "lock");
        lock.unlock();
        waiter.join();
    }

    private void rests(Threads.Run<?> waiter, String name) {
        Wait.until(name + " rests", () -> waiter.thread.getState() == Thread.State.WAITING);
        assertEquals(lock, LockSupport.getBlocker(waiter.thread), name);
    }
}
