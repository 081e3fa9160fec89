package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReadWriteLock;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Readers and writers. */
class ReadWriteLockTest extends StoreTest {
    private DistributedReadWriteLock both;
    private DistributedLock reader;
    private DistributedLock writer;

    @BeforeEach
    void sides() {
        if (!client.capabilities().shared()) {
            assertThrows(UnsupportedByStoreException.class, () -> client.readWriteLock("x"));
            assumeTrue(false, "a store that has read-write locks");
        }
        both = client.readWriteLock(lock.name());
        reader = both.readLock();
        writer = both.writeLock();
    }

    /** Leaves a store out that does not change the mode of a hold. */
    private void converts() throws Exception {
        try (Hold hold = client.lock(name("converts")).acquire()) {
            hold.downgrade();
            assertSame(LockMode.SHARED, hold.mode());
        } catch (UnsupportedByStoreException e) {
            assumeTrue(false, e.getMessage());
        }
    }

    @Test
    void itIsAReadWriteLockWhoseWriteSideIsTheLockOfItsName() {
        ReadWriteLock standard = both;
        assertEquals(reader, standard.readLock());
        assertEquals(both, client.readWriteLock(lock.name()));
        assertEquals(lock, writer);
        assertNotEquals(lock, reader);
        assertEquals(lock.name(), both.name());
        assertEquals("DistributedReadWriteLock[" + both.name() + "]", both.toString());
        assertThrows(UnsupportedOperationException.class, reader::newCondition);
        assertThrows(InvalidArgumentException.class, () -> client.readWriteLock(""));
    }

    @Test
    void readersAreTogetherAndAWriterIsAlone() throws Exception {
        try (FencelockClient other = another()) {
            DistributedReadWriteLock theirs = other.readWriteLock(both.name());
            CyclicBarrier together = new CyclicBarrier(4);
            Threads.Run<?> far =
                    Threads.start(
                            () -> {
                                theirs.readLock().lock();
                                together.await(30, TimeUnit.SECONDS);
                                theirs.readLock().unlock();
                                return null;
                            });
            Threads.all(
                    3,
                    () -> {
                        reader.lock();
                        together.await(30, TimeUnit.SECONDS);
                        reader.unlock();
                        return null;
                    });
            far.join();
            int[] unguarded = new int[1];
            AtomicInteger reading = new AtomicInteger();
            Threads.Run<?> writing =
                    Threads.start(
                            () -> {
                                for (int i = 0; i < 20; i++) {
                                    theirs.writeLock().lock();
                                    assertEquals(0, reading.get());
                                    unguarded[0]++;
                                    theirs.writeLock().unlock();
                                }
                                return null;
                            });
            Threads.all(
                    3,
                    () -> {
                        for (int i = 0; i < 20; i++) {
                            reader.lock();
                            reading.incrementAndGet();
                            int seen = unguarded[0];
                            Thread.yield();
                            assertEquals(seen, unguarded[0]);
                            reading.decrementAndGet();
                            reader.unlock();
                        }
                        return null;
                    });
            writing.join();
            reader.lock();
            assertEquals(20, unguarded[0]);
            reader.unlock();
            assertFalse(writer.isLocked());
        }
    }

    @Test
    void eachSideCountsItsOwn() throws Exception {
        reader.lock();
        reader.lock();
        Hold hold = reader.acquire();
        assertEquals(3, reader.getHoldCount());
        assertEquals(0, writer.getHoldCount());
        assertTrue(reader.isHeldByCurrentThread());
        assertFalse(writer.isHeldByCurrentThread());
        hold.close();
        reader.unlock();
        reader.unlock();
        assertFalse(reader.isHeldByCurrentThread());
        writer.lock();
        assertTrue(writer.isHeldByCurrentThread());
        assertFalse(reader.isHeldByCurrentThread());
        reader.lock();
        assertEquals(1, reader.getHoldCount());
        assertEquals(1, writer.getHoldCount());
        assertFalse(Threads.start(reader::isHeldByCurrentThread).join());
        writer.unlock();
        assertTrue(reader.isHeldByCurrentThread());
        assertFalse(writer.isHeldByCurrentThread());
        reader.unlock();
        converts();
        Hold writing = writer.acquire();
        writing.downgrade();
        assertFalse(writer.isHeldByCurrentThread());
        assertEquals(1, reader.getHoldCount());
        writing.close();
        assertEquals(0, reader.getHoldCount());
    }

    @Test
    void aReaderThatComesLaterStandsBehindTheWriterThatWaits() throws Exception {
        reader.lock();
        long read = reader.token();
        Threads.Run<Long> writing =
                Threads.start(
                        () -> {
                            writer.lock();
                            long token = writer.token();
                            writer.unlock();
                            return token;
                        });
        Wait.forWaiters(client, 1);
        // Another's: not even a try passes who waits.
        assertFalse(Threads.start(() -> reader.tryLock()).join());
        Threads.Run<Long> late =
                Threads.start(
                        () -> {
                            reader.lock();
                            long token = reader.token();
                            reader.unlock();
                            return token;
                        });
        Wait.forWaiters(client, 2);
        reader.unlock();
        long written = writing.join();
        assertTrue(read < written && written < late.join());
    }

    @Test
    void whoReadsReadsAgainPastAWriterThatWaits() throws Exception {
        reader.lock();
        Threads.Run<?> writing =
                Threads.start(
                        () -> {
                            writer.lock();
                            writer.unlock();
                            return null;
                        });
        Wait.forWaiters(client, 1);
        reader.lock();
        assertTrue(reader.tryLock());
        try (Hold hold = reader.acquire()) {
            assertTrue(hold.isReentry());
            assertEquals(reader.token(), hold.token());
        }
        reader.unlock();
        reader.unlock();
        assertFalse(writing.isDone());
        reader.unlock();
        writing.join();
        assertThrows(NotHeldException.class, reader::unlock);
    }

    @Test
    void whoReadsAndAsksToWriteIsAnIllegalMonitorStateAtOnce() throws Exception {
        reader.lock();
        assertThrows(IllegalMonitorStateException.class, writer::lock);
        assertThrows(IllegalMonitorStateException.class, writer::lockInterruptibly);
        assertThrows(IllegalMonitorStateException.class, writer::tryLock);
        assertThrows(
                IllegalMonitorStateException.class, () -> writer.tryLock(1, TimeUnit.HOURS));
        WouldDeadlockException told =
                assertThrows(WouldDeadlockException.class, () -> writer.acquire());
        assertEquals(ErrorCode.WOULD_DEADLOCK, told.code());
        assertFalse(told.isRetryable());
        assertThrows(WouldDeadlockException.class, () -> lock.tryAcquire());
        assertEquals(0, Wait.waiting(client));
        assertThrows(NotHeldException.class, writer::unlock);
        reader.unlock();
        writer.lock();
        writer.unlock();

        // An owner of its own: the future fails, and nothing is thrown.
        Owner owner = Owner.create();
        try (Hold hold = reader.withOwner(owner).acquire()) {
            CompletableFuture<Hold> upgrade = writer.withOwner(owner).acquireAsync();
            ExecutionException failure =
                    assertThrows(
                            ExecutionException.class, () -> upgrade.get(30, TimeUnit.SECONDS));
            assertInstanceOf(WouldDeadlockException.class, failure.getCause());
            assertTrue(hold.isValid());
        }
    }

    @Test
    void whoWritesReadsAsWell() {
        writer.lock();
        reader.lock();
        assertEquals(writer.token(), reader.token());
        assertTrue(writer.tryLock());
        writer.unlock();
        reader.unlock();
        assertThrows(NotHeldException.class, reader::unlock);
        assertFalse(Threads.start(() -> reader.tryLock()).join());
        writer.unlock();
        assertTrue(
                Threads.start(
                                () -> {
                                    boolean locked = reader.tryLock();
                                    reader.unlock();
                                    return locked;
                                })
                        .join());
    }

    @Test
    void whoReadsInsideAWriteAndUnlocksTheWriteReadsOn() throws Exception {
        converts();
        try (FencelockClient other = another()) {
            DistributedReadWriteLock theirs = other.readWriteLock(lock.name());
            writer.lock();
            reader.lock();
            writer.unlock();
            assertTrue(theirs.readLock().tryLock(30, TimeUnit.SECONDS));
            assertFalse(theirs.writeLock().withOwner(Owner.create()).tryLock());
            assertThrows(WouldDeadlockException.class, writer::lock);
            theirs.readLock().unlock();
            reader.unlock();
            assertTrue(theirs.writeLock().tryLock(30, TimeUnit.SECONDS));
            theirs.writeLock().unlock();
        }
    }

    @Test
    void aHoldIsDowngradedAndALoneReadersIsUpgraded() throws Exception {
        converts();
        try (FencelockClient other = another()) {
            DistributedReadWriteLock theirs = other.readWriteLock(lock.name());
            Hold hold = writer.acquire();
            long written = hold.token();
            assertSame(LockMode.EXCLUSIVE, hold.mode());
            assertTrue(hold.tryUpgrade());
            assertEquals(written, hold.token());
            hold.downgrade();
            hold.downgrade();
            long read = hold.token();
            assertTrue(written < read);
            assertSame(LockMode.SHARED, hold.mode());
            assertEquals(read, hold.check());
            try (Hold beside = theirs.readLock().acquire(Duration.ofSeconds(30))) {
                assertTrue(beside.token() > written);
                assertFalse(hold.tryUpgrade());
                assertFalse(hold.tryUpgradeAsync().get(30, TimeUnit.SECONDS));
                assertSame(LockMode.SHARED, hold.mode());
            }
            // Alone, it passes the writer that waits.
            Threads.Run<Long> writing =
                    Threads.start(
                            () -> {
                                try (Hold late = theirs.writeLock().acquire()) {
                                    return late.token();
                                }
                            });
            SemaphoreTest.withAWaiter(client, lock.name());
            Wait.until("the reader is alone", hold::tryUpgrade);
            assertSame(LockMode.EXCLUSIVE, hold.mode());
            assertTrue(hold.token() > read);
            hold.downgradeAsync().get(30, TimeUnit.SECONDS);
            long last = hold.token();
            assertFalse(writing.isDone());
            hold.close();
            assertEquals(last, hold.token());
            assertTrue(writing.join() > last);
            assertThrows(NotHeldException.class, hold::downgrade);
            assertThrows(NotHeldException.class, hold::tryUpgrade);
            assertThrows(NotHeldException.class, hold::mode);
        }
    }

    @Test
    void twoThreadsOfOneOwnerReadAsOne() throws Exception {
        Owner owner = Owner.create();
        DistributedLock reading = reader.withOwner(owner);
        reading.lock();
        long token = reading.token();
        Threads.start(
                        () -> {
                            reading.lock();
                            assertEquals(token, reading.token());
                            assertThrows(
                                    WouldDeadlockException.class,
                                    () -> writer.withOwner(owner).lock());
                            return null;
                        })
                .join();
        reading.unlock();
        assertFalse(writer.tryLock());
        // The other thread's, which any thread of the owner unlocks.
        reading.unlock();
        assertTrue(writer.tryLock());
        writer.unlock();
    }

    @Test
    void anInterruptEndsAReadersWaitAndLeavesTheQueue() throws Exception {
        try (FencelockClient other = another()) {
            DistributedLock theirs = other.lock(lock.name());
            theirs.lock();
            Threads.Run<Object> bounded =
                    Threads.start(() -> reader.tryLock(1, TimeUnit.HOURS));
            Threads.Run<Object> waiting = Threads.start(() -> reader.acquire());
            Threads.Run<Boolean> patient =
                    Threads.start(
                            () -> {
                                reader.lock();
                                boolean kept = Thread.interrupted();
                                reader.unlock();
                                return kept;
                            });
            Wait.forWaiters(client, 3);
            bounded.thread.interrupt();
            waiting.thread.interrupt();
            patient.thread.interrupt();
            assertInstanceOf(InterruptedException.class, bounded.failure());
            Throwable ended = waiting.failure();
            assertInstanceOf(InterruptedException.class, ended);
            assertTrue(ended.getMessage().contains("to read"), ended.getMessage());
            Wait.forWaiters(client, 1);
            theirs.unlock();
            assertTrue(patient.join());
            Wait.until("the lock is free", () -> !theirs.isLocked());
            assertTrue(theirs.tryLock());
            theirs.unlock();
        }
    }

    @Test
    void aCancelledFutureLeavesTheQueue() throws Exception {
        writer.lock();
        CompletableFuture<Hold> reading = reader.acquireAsync();
        Wait.forWaiters(client, 1);
        reading.cancel(false);
        Wait.forWaiters(client, 0);
        writer.unlock();
        CompletableFuture<Long> read =
                reader.withLockAsync(hold -> CompletableFuture.completedFuture(hold.token()));
        assertTrue(read.get(30, TimeUnit.SECONDS) > 0);
        assertTrue(writer.tryLock(30, TimeUnit.SECONDS));
        writer.unlock();
    }

    @Test
    void aLossIsToldToTheReaderThatItConcerns() throws Exception {
        assumeTrue(client.capabilities().leases(), "explicit leases");
        try (FencelockClient other = another()) {
            DistributedLock theirs = other.readWriteLock(lock.name()).readLock();
            Hold brief = reader.nonReentrant().withLease(Duration.ofMillis(150)).acquire();
            Hold beside = reader.nonReentrant().acquire();
            Hold far = theirs.acquire();
            assertEquals(LossReason.ENDED, brief.lost().get(30, TimeUnit.SECONDS));
            assertThrows(LockLostException.class, brief::check);
            assertThrows(LockLostException.class, brief::close);
            assertTrue(beside.isValid() && far.isValid());
            assertFalse(beside.lost().isDone() || far.lost().isDone());
            assertNull(writer.tryAcquire());
            beside.close();
            far.close();
        }
        try (Hold hold = writer.acquire(Duration.ofSeconds(30))) {
            assertNotEquals(Abandoned.YES, hold.previousAbandoned());
        }
    }

    @Test
    void closingEndsWhatIsReadAndWhoWaits() throws Exception {
        FencelockClient other = another();
        DistributedReadWriteLock theirs = other.readWriteLock(lock.name());
        Hold one = theirs.readLock().nonReentrant().acquire();
        Hold two = theirs.readLock().nonReentrant().acquire();
        Threads.Run<Object> writing = Threads.start(() -> theirs.writeLock().acquire());
        Wait.forWaiters(other, 1);
        Threads.Run<Object> reading = Threads.start(() -> theirs.readLock().acquire());
        Wait.forWaiters(other, 2);
        other.close();
        assertInstanceOf(ClientClosedException.class, writing.failure());
        assertInstanceOf(ClientClosedException.class, reading.failure());
        for (Hold hold : List.of(one, two)) {
            assertEquals(LossReason.CLOSED, hold.lost().get(30, TimeUnit.SECONDS));
            assertThrows(LockLostException.class, hold::close);
        }
        assertTrue(writer.tryLock(30, TimeUnit.SECONDS));
        writer.unlock();
    }

    @Test
    void anInspectionShowsWhoReads() throws Exception {
        Hold one = reader.withOwner(Owner.of("me")).acquire();
        Hold two = reader.acquire();
        Threads.Run<?> writing =
                Threads.start(
                        () -> {
                            writer.lock();
                            writer.unlock();
                            return null;
                        });
        LockInfo seen = SemaphoreTest.withAWaiter(client, lock.name());
        assertEquals(2, seen.holds().size());
        for (LockInfo.HoldInfo hold : seen.holds()) {
            assertSame(LockMode.SHARED, hold.mode());
            assertEquals(0, hold.permits() + hold.of());
            assertTrue(hold.token() == one.token() || hold.token() == two.token());
            assertEquals(
                    client.capabilities().owners() && hold.token() == one.token() ? "me" : null,
                    hold.owner());
        }
        assertSame(LockMode.EXCLUSIVE, seen.waiters().get(0).mode());
        one.close();
        two.close();
        writing.join();
    }

    @Test
    void aReadThatNobodyRefersToStaysUntilItIsUnlocked() throws Exception {
        String name = name("collected");
        client.readWriteLock(name).readLock().lock();
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertFalse(Threads.start(() -> client.lock(name).tryLock()).join());
        client.readWriteLock(name).readLock().unlock();
        assertTrue(client.lock(name).tryLock());
        client.lock(name).unlock();
    }
}
