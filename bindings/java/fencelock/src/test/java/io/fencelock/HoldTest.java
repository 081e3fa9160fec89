package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** What a hold can do and tell. */
class HoldTest extends StoreTest {
    @Test
    void aHoldIsValidUntilItIsClosed() throws Exception {
        Hold kept;
        try (Hold hold = lock.acquire(Duration.ofSeconds(10))) {
            kept = hold;
            assertTrue(hold.isValid());
            assertEquals(lock.name(), hold.name());
            assertEquals(hold.token(), hold.check());
            assertTrue(hold.remaining().compareTo(Duration.ofSeconds(1)) > 0);
            assertFalse(hold.isReentry());
            assertFalse(hold.isWanted());
            assertTrue(hold.toString().contains(lock.name()));
        }
        assertFalse(kept.isValid());
        assertEquals(Duration.ZERO, kept.remaining());
        assertFalse(kept.isWanted());
        assertThrows(NotHeldException.class, kept::check);
        assertThrows(NotHeldException.class, kept::release);
        assertThrows(NotHeldException.class, kept::ticket);
        assertThrows(NotHeldException.class, () -> kept.extend(Duration.ofSeconds(1)));
        assertThrows(NotHeldException.class, kept::previousAbandoned);
        kept.close();
        assertFalse(lock.isLocked());
    }

    @Test
    void aBoundedAcquireTimesOut() throws Exception {
        try (Hold hold = lock.nonReentrant().acquire()) {
            LockTimeoutException late =
                    assertThrows(
                            LockTimeoutException.class, () -> lock.acquire(Duration.ofMillis(20)));
            assertTrue(late.isRetryable());
            assertThrows(LockContendedException.class, () -> lock.acquire(Duration.ZERO));
            assertThrows(LockContendedException.class, () -> lock.acquire(Duration.ofDays(-1)));
            assertNull(lock.tryAcquire());
            assertTrue(hold.isValid());
        }
        try (Hold hold = lock.acquire(Duration.ofSeconds(Long.MAX_VALUE))) {
            assertTrue(hold.isValid());
        }
    }

    @Test
    void anotherThreadMayReleaseIt() throws Exception {
        Hold hold = lock.acquire();
        Threads.start(
                        () -> {
                            hold.release();
                            return null;
                        })
                .join();
        assertFalse(lock.isLocked());
        assertFalse(lock.isHeldByCurrentThread());
    }

    @Test
    void lossIsToldEverywhere() throws Exception {
        Hold hold = lock.acquire();
        CompletableFuture<LossReason> lost = hold.lost();
        CompletableFuture<LossReason> again = hold.lost();
        assertFalse(lost.isDone());
        client.breakLock(lock.name(), Long.MAX_VALUE);
        assertEquals(LossReason.BROKEN, lost.get(30, TimeUnit.SECONDS));
        assertEquals(LossReason.BROKEN, again.get(30, TimeUnit.SECONDS));
        assertFalse(hold.isValid());
        assertEquals(LossReason.BROKEN, hold.lost().get(30, TimeUnit.SECONDS));
        LockLostException told = assertThrows(LockLostException.class, hold::check);
        assertEquals(ErrorCode.LOST, told.code());
        assertTrue(told.getMessage().contains(lock.name()), told.getMessage());
        LockLostException atClose = assertThrows(LockLostException.class, hold::close);
        assertTrue(atClose.getMessage().length() > 20, atClose.getMessage());
        hold.close();
    }

    @Test
    void aFutureOfLossCannotBeCompletedByOthers() throws Exception {
        Hold hold = lock.acquire();
        hold.lost().complete(LossReason.ENDED);
        assertFalse(hold.lost().isDone());
        hold.close();
    }

    @Test
    void lossIsNotToldAfterTheRelease() throws Exception {
        Hold hold = lock.acquire();
        CompletableFuture<LossReason> lost = hold.lost();
        hold.close();
        try (Hold next = lock.acquire()) {
            client.breakLock(lock.name(), Long.MAX_VALUE);
            next.lost().get(30, TimeUnit.SECONDS);
            assertFalse(lost.isDone());
            assertThrows(LockLostException.class, next::release);
        }
        assertFalse(hold.lost().isDone());
    }

    @Test
    void aLossInterruptsTheOwnerWhenAsked() throws Exception {
        Threads.Run<Boolean> owner =
                Threads.start(
                        () -> {
                            Hold hold = lock.withInterruptOnLoss().acquire();
                            while (!Thread.interrupted()) {
                                LockSupport.park();
                            }
                            assertThrows(LockLostException.class, hold::close);
                            return hold.isValid();
                        });
        Wait.until("it is locked", lock::isLocked);
        client.breakLock(lock.name(), Long.MAX_VALUE);
        assertFalse(owner.join());

        Threads.Run<Boolean> locker =
                Threads.start(
                        () -> {
                            DistributedLock nervous = lock.withInterruptOnLoss();
                            nervous.lock();
                            while (!Thread.interrupted()) {
                                LockSupport.park();
                            }
                            assertThrows(LockLostException.class, nervous::unlock);
                            return true;
                        });
        Wait.until("it is locked", lock::isLocked);
        client.breakLock(lock.name(), Long.MAX_VALUE);
        assertTrue(locker.join());
    }

    @Test
    void noInterruptComesAfterTheRelease() throws Exception {
        Hold hold = lock.withInterruptOnLoss().acquire();
        hold.release();
        try (Hold next = lock.acquire()) {
            CompletableFuture<LossReason> lost = next.lost();
            client.breakLock(lock.name(), Long.MAX_VALUE);
            lost.join();
            assertThrows(LockLostException.class, next::release);
        }
        assertFalse(Thread.interrupted());
    }

    @Test
    void extendGivesALongerLease() throws Exception {
        try (Hold hold = lock.withLease(Duration.ofSeconds(10)).acquire()) {
            assertTrue(hold.remaining().compareTo(Duration.ofSeconds(10)) <= 0);
            // Never beyond the session, where that is the lease.
            boolean leases = client.capabilities().leases();
            Duration least = leases ? Duration.ofMinutes(2) : Duration.ofSeconds(15);
            hold.extend(Duration.ofMinutes(5));
            assertTrue(hold.remaining().compareTo(least) > 0);
            hold.extendAsync(Duration.ofMinutes(9)).get(30, TimeUnit.SECONDS);
            least = leases ? Duration.ofMinutes(7) : least;
            assertTrue(hold.remaining().compareTo(least) > 0);
            assertThrows(InvalidArgumentException.class, () -> hold.extend(Duration.ofNanos(1)));
            assertThrows(InvalidArgumentException.class, () -> hold.extend(Duration.ZERO));
        }
    }

    @Test
    void anExplicitLeaseEndsByItself() throws Exception {
        assumeTrue(client.capabilities().leases(), "explicit leases");
        Hold hold = lock.withLease(Duration.ofMillis(300)).acquire();
        assertEquals(LossReason.ENDED, hold.lost().get(30, TimeUnit.SECONDS));
        assertThrows(LockLostException.class, hold::close);
        Hold bounded = lock.withMaxHold(Duration.ofMillis(200)).acquire();
        assertEquals(LossReason.ENDED, bounded.lost().get(30, TimeUnit.SECONDS));
        assertThrows(LockLostException.class, bounded::release);
    }

    @Test
    void theNextHolderLearnsOfAnAbandonedOne() throws Exception {
        assumeTrue(client.capabilities().abandoned(), "whether the predecessor was lost");
        lock.acquire().close();
        try (Hold hold = lock.acquire()) {
            assertEquals(Abandoned.NO, hold.previousAbandoned());
            client.breakLock(lock.name(), Long.MAX_VALUE);
            hold.lost().get(30, TimeUnit.SECONDS);
            assertThrows(LockLostException.class, hold::release);
        }
        try (Hold hold = lock.acquire()) {
            assertEquals(Abandoned.YES, hold.previousAbandoned());
        }
        try (Hold hold = lock.acquire()) {
            assertEquals(Abandoned.NO, hold.previousAbandoned());
        }
    }

    @Test
    void aHolderLearnsThatItIsWanted() throws Exception {
        try (FencelockClient other = another()) {
            Hold hold = lock.acquire();
            CompletableFuture<Void> wanted = hold.wanted();
            CompletableFuture<Hold> theirs = other.lock(lock.name()).acquireAsync();
            wanted.get(30, TimeUnit.SECONDS);
            assertTrue(hold.isWanted());
            hold.release();
            theirs.get(30, TimeUnit.SECONDS).release();
        }
    }

    @Test
    void aTicketLetsAnotherGoOn() throws Exception {
        assumeTrue(client.capabilities().owners(), "owners across clients");
        try (FencelockClient other = another();
                Hold hold = lock.withOwner(Owner.of("request-17")).acquire()) {
            String ticket = hold.ticket();
            try (Hold theirs = other.attach(ticket)) {
                assertEquals(hold.token(), theirs.token());
                assertEquals(hold.name(), theirs.name());
                assertTrue(theirs.isValid());
            }
            other.attachAsync(ticket).get(30, TimeUnit.SECONDS).release();
            assertTrue(hold.isValid());
            assertThrows(InvalidArgumentException.class, () -> other.attach("no ticket"));
        }
        try (Hold hold = lock.acquire()) {
            assertThrows(InvalidArgumentException.class, hold::ticket);
        }
    }

    @Test
    void aForgottenHoldIsReleased() throws Exception {
        forget();
        Wait.until(
                "the hold is released",
                () -> {
                    System.gc();
                    return !lock.isLocked();
                });
    }

    private void forget() throws InterruptedException {
        assertNotNull(lock.acquire());
    }
}
