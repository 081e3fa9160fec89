package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The objects that programs have of clients, locks and holds, and who their owner is. */
class HandlesTest extends StoreTest {
    /** A thread that pretends to be another, in every way that can be overridden. */
    private static final class Impostor extends Thread {
        Impostor(Runnable body) {
            super(body);
            setDaemon(true);
        }

        @Override
        @SuppressWarnings("deprecation")
        public long getId() {
            return 7;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Impostor;
        }

        @Override
        public int hashCode() {
            return 7;
        }
    }

    @Test
    void threadsThatShareAnIdExcludeEachOther() throws Exception {
        FutureTask<Boolean> first =
                new FutureTask<>(
                        () -> {
                            lock.lock();
                            return lock.isHeldByCurrentThread();
                        });
        Thread holder = new Impostor(first);
        holder.start();
        assertTrue(first.get(30, TimeUnit.SECONDS));
        FutureTask<Boolean> second =
                new FutureTask<>(
                        () -> {
                            assertFalse(lock.isHeldByCurrentThread());
                            assertThrows(NotHeldException.class, lock::unlock);
                            assertThrows(NotHeldException.class, lock::token);
                            assertNull(lock.tryAcquire());
                            return lock.tryLock();
                        });
        new Impostor(second).start();
        assertFalse(second.get(30, TimeUnit.SECONDS), "two threads hold the lock");
    }

    @Test
    void handlesOfOneLockAreEqual() throws Exception {
        DistributedLock same = client.lock(lock.name());
        assertEquals(lock, same);
        assertEquals(lock.hashCode(), same.hashCode());
        assertEquals(
                lock.withOwner(Owner.of("a")).withLease(Duration.ofSeconds(5)),
                same.withOwner(Owner.of("a")).withLease(Duration.ofSeconds(5)));
        List<DistributedLock> others = new ArrayList<>();
        others.add(client.lock(name("other")));
        others.add(lock.nonReentrant());
        others.add(lock.withLease(Duration.ofSeconds(5)));
        others.add(lock.withMaxHold(Duration.ofSeconds(5)));
        others.add(lock.withOwner(Owner.of("a")));
        others.add(lock.withInterruptOnLoss());
        for (DistributedLock other : others) {
            assertNotEquals(lock, other);
        }
        try (FencelockClient second = another()) {
            assertNotEquals(lock, second.lock(lock.name()));
        }
        // Two holds are two, also of one owner.
        try (Hold hold = lock.acquire();
                Hold again = lock.acquire()) {
            assertEquals(hold.token(), again.token());
            assertNotEquals(hold, again);
        }
    }

    @Test
    void aTokenStaysAndACheckThrowsWhenTheLockWasLost() throws Exception {
        lock.lock();
        long token = lock.token();
        assertEquals(token, lock.check());
        Hold hold = lock.acquire();
        CompletableFuture<LossReason> lost = hold.lost();
        client.breakLock(lock.name(), Long.MAX_VALUE);
        lost.get(30, TimeUnit.SECONDS);
        Wait.until("the lock is lost", () -> !lock.isHeldByCurrentThread());
        assertEquals(token, hold.token());
        assertEquals(token, lock.token());
        assertThrows(LockLostException.class, hold::check);
        assertThrows(LockLostException.class, lock::check);
        assertThrows(LockLostException.class, hold::close);
        assertThrows(LockLostException.class, lock::unlock);
        assertThrows(NotHeldException.class, lock::token);
        assertThrows(NotHeldException.class, lock::check);
        assertEquals(token, hold.token());
        assertThrows(NotHeldException.class, hold::check);
    }

    @Test
    void aTryIsNullHoweverLongItWaits() throws Exception {
        try (Hold hold = lock.acquire()) {
            assertTrue(hold.isValid());
            DistributedLock other = lock.nonReentrant();
            assertNull(other.tryAcquire());
            assertNull(other.tryAcquire(Duration.ZERO));
            assertNull(other.tryAcquire(Duration.ofSeconds(-5)));
            assertNull(other.tryAcquire(Duration.ofMillis(20)));
            Thread.currentThread().interrupt();
            assertThrows(
                    InterruptedException.class, () -> other.tryAcquire(Duration.ofHours(1)));
        }
        try (Hold hold = lock.tryAcquire(Duration.ofSeconds(30))) {
            assertTrue(hold.isValid());
        }
    }

    /** What Spring's scopes and mocks do. */
    @Test
    void proxiesStandForClientsLocksAndHolds() throws Exception {
        FencelockClient proxied = proxy(FencelockClient.class, client);
        DistributedLock held = proxy(DistributedLock.class, proxied.lock(lock.name()));
        assertTrue(held.tryLock());
        assertTrue(lock.isHeldByCurrentThread());
        held.unlock();
        Hold hold = proxy(Hold.class, held.acquire());
        hold.close();
        assertFalse(lock.isLocked());
    }

    private static <T> T proxy(Class<T> type, T target) {
        InvocationHandler handler =
                (self, method, arguments) -> {
                    try {
                        return method.invoke(target, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                };
        return type.cast(
                Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }
}
