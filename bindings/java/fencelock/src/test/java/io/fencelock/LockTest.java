package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The methods of java.util.concurrent.locks.Lock. */
class LockTest extends StoreTest {
    @Test
    void aThreadReentersAndIsCounted() throws Exception {
        assertEquals(0, lock.getHoldCount());
        lock.lock();
        lock.lock();
        lock.lockInterruptibly();
        assertTrue(lock.tryLock());
        assertTrue(lock.tryLock(1, TimeUnit.SECONDS));
        for (int count = 5; count > 0; count--) {
            assertEquals(count, lock.getHoldCount());
            assertTrue(lock.isHeldByCurrentThread());
            assertTrue(lock.isLocked());
            assertFalse(Threads.start(lock::tryLock).join());
            lock.unlock();
        }
        assertEquals(0, lock.getHoldCount());
        assertFalse(lock.isHeldByCurrentThread());
        assertFalse(lock.isLocked());
        assertTrue(
                Threads.start(
                                () -> {
                                    boolean locked = lock.tryLock();
                                    lock.unlock();
                                    return locked;
                                })
                        .join());
    }

    @Test
    void reentryKeepsTheTokenAndANewGrantRaisesIt() {
        lock.lock();
        long first = lock.token();
        lock.lock();
        assertEquals(first, lock.token());
        lock.unlock();
        assertEquals(first, lock.token());
        lock.unlock();
        lock.lock();
        assertTrue(lock.token() > first);
        lock.unlock();
    }

    @Test
    void unlockingWhatAnotherHoldsIsAnIllegalMonitorState() {
        lock.lock();
        Throwable failure =
                Threads.start(
                                () -> {
                                    lock.unlock();
                                    return null;
                                })
                        .failure();
        assertInstanceOf(IllegalMonitorStateException.class, failure);
        assertEquals(ErrorCode.NOT_HELD, assertInstanceOf(NotHeldException.class, failure).code());
        assertTrue(failure.getMessage().contains(lock.name()));
        assertTrue(lock.isHeldByCurrentThread());
        lock.unlock();
    }

    @Test
    void unlockingMoreOftenThanLockingFails() {
        assertThrows(NotHeldException.class, lock::unlock);
        lock.lock();
        lock.unlock();
        assertThrows(NotHeldException.class, lock::unlock);
        assertThrows(NotHeldException.class, lock::token);
    }

    @Test
    void aLockOfTheSameNameIsTheSameLock() {
        client.lock(lock.name()).lock();
        assertTrue(lock.isHeldByCurrentThread());
        lock.lock();
        assertEquals(2, client.lock(lock.name()).getHoldCount());
        client.lock(lock.name()).unlock();
        // Nobody refers to the lock meanwhile but the client.
        System.gc();
        client.lock(lock.name()).unlock();
        assertEquals(0, lock.getHoldCount());
    }

    @Test
    void aLockThatIsHeldIsNotCollected() throws Exception {
        String name = name("collected");
        client.lock(name).lock();
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertFalse(Threads.start(() -> client.lock(name).tryLock()).join());
        client.lock(name).unlock();
    }

    @Test
    void whereNamesArePathsOneThatIsNoneIsRefused() {
        assertEquals(store.url().startsWith("zk"), client.capabilities().paths());
        if (client.capabilities().paths()) {
            assertThrows(InvalidArgumentException.class, () -> client.lock("no//path"));
        } else {
            assertEquals("no//path", client.lock("no//path").name());
        }
    }

    @Test
    void conditionsAreRefusedWithAReason() {
        String reason =
                assertThrows(UnsupportedOperationException.class, lock::newCondition).getMessage();
        assertTrue(reason.contains("signal"), reason);
    }

    @Test
    void tryLockGivesUpAtItsBound() throws Exception {
        lock.lock();
        Threads.start(
                        () -> {
                            assertFalse(lock.tryLock());
                            assertFalse(lock.tryLock(0, TimeUnit.SECONDS));
                            assertFalse(lock.tryLock(-5, TimeUnit.DAYS));
                            assertFalse(lock.tryLock(20, TimeUnit.MILLISECONDS));
                            return null;
                        })
                .join();
        lock.unlock();
        assertTrue(lock.tryLock(Long.MAX_VALUE, TimeUnit.DAYS));
        lock.unlock();
    }

    @Test
    void aTryDoesNotPassThoseWhoWait() {
        lock.lock();
        Threads.Run<Object> waiter =
                Threads.start(
                        () -> {
                            lock.lock();
                            return null;
                        });
        Wait.forWaiters(client, 1);
        lock.unlock();
        waiter.join();
        assertFalse(lock.tryLock());
    }

    @Test
    void waitersAreServedInTheirOrder() {
        lock.lock();
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        List<Threads.Run<?>> waiters = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            int number = i;
            waiters.add(
                    Threads.start(
                            () -> {
                                lock.lock();
                                order.add(number);
                                lock.unlock();
                                return null;
                            }));
            Wait.forWaiters(client, i + 1);
        }
        lock.unlock();
        waiters.forEach(Threads.Run::join);
        assertEquals(List.of(0, 1, 2, 3, 4, 5, 6, 7), order);
    }

    @Test
    void twoHundredThreadsExcludeEachOther() {
        AtomicInteger inside = new AtomicInteger();
        int[] unguarded = new int[1];
        long[] lastToken = new long[1];
        Threads.all(
                200,
                () -> {
                    for (int i = 0; i < 5; i++) {
                        lock.lock();
                        try {
                            assertEquals(1, inside.incrementAndGet());
                            assertTrue(lock.token() > lastToken[0]);
                            lastToken[0] = lock.token();
                            unguarded[0]++;
                            assertEquals(0, inside.decrementAndGet());
                        } finally {
                            lock.unlock();
                        }
                    }
                    return null;
                });
        assertEquals(1000, unguarded[0]);
        assertFalse(lock.isLocked());
    }

    @Test
    void twoClientsExcludeEachOther() throws Exception {
        try (FencelockClient other = another()) {
            DistributedLock theirs = other.lock(lock.name());
            int[] unguarded = new int[1];
            Threads.Run<?> run =
                    Threads.start(
                            () -> {
                                for (int i = 0; i < 50; i++) {
                                    theirs.lock();
                                    unguarded[0]++;
                                    theirs.unlock();
                                }
                                return null;
                            });
            for (int i = 0; i < 50; i++) {
                lock.lock();
                unguarded[0]++;
                lock.unlock();
            }
            run.join();
            lock.lock();
            assertEquals(100, unguarded[0]);
            assertFalse(theirs.tryLock());
            assertFalse(theirs.isHeldByCurrentThread());
            assertThrows(NotHeldException.class, theirs::unlock);
            lock.unlock();
        }
    }

    @Test
    void reentryOnAnEndedHoldIsANewGrant() {
        lock.lock();
        long first = lock.token();
        Broken kept = client.breakLock(lock.name(), first - 2000);
        assertEquals(0, kept.ended());
        assertTrue(kept.changedHands().orElseThrow() <= first);
        assertThrows(InvalidArgumentException.class, () -> client.breakLock(lock.name(), -1));
        assertEquals(new Broken(1, OptionalLong.empty()), client.breakLock(lock.name(), first));
        Wait.until("the loss is known", () -> !lock.isHeldByCurrentThread());
        assertThrows(LockLostException.class, lock::check);
        lock.lock();
        assertTrue(lock.token() > first);
        assertEquals(1, lock.getHoldCount());
        lock.unlock();
        // The outer level was lost, and its unlock says so.
        assertThrows(LockLostException.class, lock::unlock);
        assertThrows(NotHeldException.class, lock::unlock);
        assertFalse(lock.isLocked());
    }

    @Test
    void theLastUnlockOfALostLockSaysSo() {
        lock.lock();
        lock.lock();
        client.breakLock(lock.name(), Long.MAX_VALUE);
        Wait.until("the loss is known", () -> lock.getHoldCount() == 0);
        lock.unlock();
        assertThrows(LockLostException.class, lock::check);
        assertThrows(LockLostException.class, lock::unlock);
        assertThrows(NotHeldException.class, lock::unlock);
    }

    @Test
    void anInnerLeaseIsAHoldOfItsOwn() {
        lock.lock();
        DistributedLock leased = lock.withLease(Duration.ofSeconds(20));
        leased.lock();
        assertEquals(2, lock.getHoldCount());
        lock.lock();
        assertEquals(3, lock.getHoldCount());
        lock.unlock();
        leased.unlock();
        assertEquals(1, lock.getHoldCount());
        lock.unlock();
        assertFalse(lock.isLocked());
    }

    @Test
    void aNonReentrantLockHasHoldsOnly() throws Exception {
        DistributedLock once = lock.nonReentrant();
        assertThrows(UnsupportedOperationException.class, once::lock);
        assertThrows(UnsupportedOperationException.class, once::tryLock);
        try (Hold hold = once.acquire()) {
            assertTrue(hold.isValid());
            assertEquals(0, once.getHoldCount());
            assertSame(null, once.tryAcquire());
        }
    }

    @Test
    void guardsAndLocksOfAThreadAreOneOwner() throws Exception {
        lock.lock();
        try (Hold hold = lock.acquire()) {
            assertTrue(hold.isReentry());
            assertEquals(lock.token(), hold.token());
            assertEquals(2, lock.getHoldCount());
            lock.unlock();
            assertEquals(1, lock.getHoldCount());
            // The hold is closed by its close, not by unlock.
            assertThrows(NotHeldException.class, lock::unlock);
            assertTrue(hold.isValid());
        }
        assertEquals(0, lock.getHoldCount());
    }
}
