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
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Permits. */
class SemaphoreTest extends StoreTest {
    private DistributedSemaphore mailers;

    @BeforeEach
    void semaphore() {
        if (!client.capabilities().permits()) {
            assertThrows(UnsupportedByStoreException.class, () -> client.semaphore("x", 3));
            assumeTrue(false, "a store that has semaphores");
        }
        mailers = client.semaphore(name("mailers"), 3);
    }

    @AfterEach
    void forgetInterrupt() {
        Thread.interrupted();
    }

    @Test
    void permitsAreCountedAndGivenBackTogether() throws Exception {
        assertEquals(3, mailers.permits());
        assertEquals(3, mailers.availablePermits());
        try (Permit two = mailers.acquire(2)) {
            assertEquals(2, two.permits());
            assertEquals(mailers.name(), two.name());
            assertEquals(1, mailers.availablePermits());
            assertEquals(1, mailers.availablePermitsAsync().get(30, TimeUnit.SECONDS));
            assertNull(mailers.tryAcquire(2));
            assertNull(mailers.tryAcquire(2, 20, TimeUnit.MILLISECONDS));
            assertNull(mailers.tryAcquire(2, Duration.ZERO));
            assertThrows(LockContendedException.class, () -> mailers.acquire(2, Duration.ZERO));
            assertThrows(
                    LockTimeoutException.class, () -> mailers.acquire(2, Duration.ofMillis(20)));
            // The same thread takes another: nobody owns a permit.
            try (Permit one = mailers.acquireUninterruptibly()) {
                assertTrue(one.token() > two.token());
                assertFalse(one.isReentry());
                assertThrows(InvalidArgumentException.class, one::ticket);
                assertThrows(InvalidArgumentException.class, one::downgrade);
                assertThrows(InvalidArgumentException.class, one::tryUpgrade);
                assertSame(LockMode.PERMITS, one.mode());
                assertNull(mailers.tryAcquire());
                assertNull(mailers.tryAcquire(1, TimeUnit.MILLISECONDS));
            }
            assertThrows(NotHeldException.class, () -> closedTwice(two));
        }
        assertEquals(3, mailers.availablePermits());
        try (Permit all = mailers.acquire(3, Duration.ofSeconds(30))) {
            assertEquals(0, mailers.availablePermits());
            assertTrue(all.toString().startsWith("Permit[" + mailers.name() + ", 3, token "));
        }
    }

    private static void closedTwice(Permit permit) {
        permit.release();
        permit.close();
        permit.release();
    }

    @Test
    void numbersThatMakeNoSenseAreRefused() throws Exception {
        for (int wrong : new int[] {-1, 0, 1_000_001}) {
            assertThrows(
                    InvalidArgumentException.class, () -> client.semaphore("x", wrong));
        }
        for (int wrong : new int[] {Integer.MIN_VALUE, 0, 4}) {
            assertThrows(InvalidArgumentException.class, () -> mailers.acquire(wrong));
            assertThrows(InvalidArgumentException.class, () -> mailers.tryAcquire(wrong));
            ExecutionException failure =
                    assertThrows(
                            ExecutionException.class,
                            () -> mailers.acquireAsync(wrong).get(30, TimeUnit.SECONDS));
            assertInstanceOf(InvalidArgumentException.class, failure.getCause());
        }
        try (Permit one = mailers.acquire()) {
            DistributedSemaphore five = client.semaphore(mailers.name(), 5);
            assertThrows(StoreMisconfiguredException.class, () -> five.acquire());
            DistributedLock same = client.lock(mailers.name());
            assertThrows(StoreMisconfiguredException.class, same::tryLock);
            assertTrue(one.isValid());
        }
    }

    @Test
    void equalAreThoseThatAcquireAlike() {
        assertEquals(mailers, client.semaphore(mailers.name(), 3));
        assertEquals(mailers.hashCode(), client.semaphore(mailers.name(), 3).hashCode());
        assertNotEquals(mailers, client.semaphore(mailers.name(), 4));
        assertNotEquals(mailers, mailers.withLease(Duration.ofSeconds(1)));
        assertNotEquals(mailers, mailers.withMaxHold(Duration.ofSeconds(1)));
        assertNotEquals(mailers, mailers.withInterruptOnLoss());
        assertEquals(
                "DistributedSemaphore[" + mailers.name() + ", 3 permits]", mailers.toString());
    }

    @Test
    void noMoreThanThereAreAreInside() throws Exception {
        try (FencelockClient other = another()) {
            DistributedSemaphore theirs = other.semaphore(mailers.name(), 3);
            AtomicInteger inside = new AtomicInteger();
            AtomicInteger turn = new AtomicInteger();
            Threads.all(
                    12,
                    () -> {
                        DistributedSemaphore mine = turn.getAndIncrement() % 2 == 0 ? mailers : theirs;
                        for (int i = 0; i < 10; i++) {
                            int count = 1 + i % 3;
                            try (Permit permits = mine.acquire(count)) {
                                assertTrue(inside.addAndGet(count) <= 3);
                                Thread.yield();
                                inside.addAndGet(-permits.permits());
                            }
                        }
                        return null;
                    });
            assertEquals(3, theirs.availablePermits());
        }
    }

    @Test
    void aSmallRequestDoesNotPassALargerOne() throws Exception {
        Permit one = mailers.acquire();
        Permit two = mailers.acquire(2);
        Threads.Run<Permit> large = Threads.start(() -> mailers.acquire(3));
        Wait.forWaiters(client, 1);
        Threads.Run<Permit> small = Threads.start(() -> mailers.acquire());
        Wait.forWaiters(client, 2);
        two.close();
        assertNull(mailers.tryAcquire());
        assertFalse(large.isDone() || small.isDone());
        one.close();
        Permit all = large.join();
        assertFalse(small.isDone());
        all.close();
        try (Permit last = small.join()) {
            assertTrue(last.token() > all.token());
        }
    }

    @Test
    void itIsResizedWhileItIsInUse() throws Exception {
        assertFalse(mailers.resize(4), "nobody is there");
        Permit all = mailers.acquire(3);
        CompletableFuture<Permit> waiting = mailers.acquireAsync(1);
        withAWaiter(client, mailers.name());
        assertTrue(mailers.resize(4));
        try (Permit one = waiting.get(30, TimeUnit.SECONDS)) {
            assertThrows(StoreMisconfiguredException.class, mailers::tryAcquire);
            assertNull(client.semaphore(mailers.name(), 4).tryAcquire());
            assertThrows(InvalidArgumentException.class, () -> mailers.resize(0));
            assertTrue(one.isValid());
            assertTrue(client.semaphore(mailers.name(), 4).resizeAsync(5).get(30, TimeUnit.SECONDS));
            ExecutionException failure =
                    assertThrows(
                            ExecutionException.class,
                            () -> mailers.resizeAsync(0).get(30, TimeUnit.SECONDS));
            assertInstanceOf(InvalidArgumentException.class, failure.getCause());
        }
        all.close();
    }

    @Test
    void whoAdoptsFollowsTheNumberOfOthers() throws Exception {
        DistributedSemaphore five = client.semaphore(mailers.name(), 5);
        DistributedSemaphore adopting = five.adopting();
        assertEquals(adopting, adopting.adopting());
        assertNotEquals(five, adopting);
        try (Permit two = mailers.acquire(2);
                Permit one = adopting.withLease(Duration.ofSeconds(30)).acquire()) {
            assertThrows(StoreMisconfiguredException.class, () -> five.acquire());
            assertNull(adopting.tryAcquire());
            assertThrows(InvalidArgumentException.class, () -> adopting.tryAcquire(4));
            assertEquals(0, adopting.availablePermits());
            assertEquals(5, adopting.permits());
            assertTrue(two.isValid() && one.isValid());
        }
        // Nobody has any: its own number counts.
        adopting.acquire(5).close();
    }

    @Test
    void oneHoldOfSeveralIsBroken() throws Exception {
        Permit one = mailers.acquire(1);
        Permit two = mailers.acquire(2);
        LockInfo.HoldInfo seen = holder(2);
        assertThrows(
                InvalidArgumentException.class,
                () -> client.breakHold(mailers.name(), seen.token(), "two"));
        assertEquals(1, client.breakHold(mailers.name(), seen.token(), seen.id()).ended());
        assertThrows(LockLostException.class, two::close);
        assertTrue(one.isValid());
        LockInfo.HoldInfo last = holder(1);
        Broken broken =
                client.breakHoldAsync(mailers.name(), last.token(), last.id())
                        .get(30, TimeUnit.SECONDS);
        assertEquals(1, broken.ended());
        assertThrows(LockLostException.class, one::close);
    }

    private LockInfo.HoldInfo holder(int permits) {
        for (LockInfo.HoldInfo holder : client.inspect(mailers.name()).orElseThrow().holds()) {
            if (holder.permits() == permits) {
                return holder;
            }
        }
        throw new AssertionError("nobody has " + permits);
    }

    @Test
    void anInterruptEndsTheWaitAndTakesNothing() throws Exception {
        Permit all = mailers.acquire(3);
        Threads.Run<Permit> waiting = Threads.start(() -> mailers.acquire(2));
        Wait.forWaiters(client, 1);
        Threads.Run<Boolean> patient =
                Threads.start(
                        () -> {
                            try (Permit permit = mailers.acquireUninterruptibly(3)) {
                                return permit.isValid() && Thread.interrupted();
                            }
                        });
        Wait.forWaiters(client, 2);
        waiting.thread.interrupt();
        patient.thread.interrupt();
        assertInstanceOf(InterruptedException.class, waiting.failure());
        Wait.forWaiters(client, 1);
        all.close();
        assertTrue(patient.join());
        assertEquals(3, mailers.availablePermits());
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, () -> mailers.acquire());
        Thread.currentThread().interrupt();
        assertThrows(
                InterruptedException.class, () -> mailers.tryAcquire(1, TimeUnit.SECONDS));
        assertEquals(3, mailers.availablePermits());
    }

    @Test
    void futuresAreCancelledAndLeaveNothing() throws Exception {
        Permit two = mailers.acquireAsync(2).get(30, TimeUnit.SECONDS);
        assertNull(mailers.tryAcquireAsync(2).get(30, TimeUnit.SECONDS));
        assertNull(
                mailers.tryAcquireAsync(2, Duration.ofMillis(20)).get(30, TimeUnit.SECONDS));
        CompletableFuture<Permit> waiting = mailers.acquireAsync(2);
        Wait.forWaiters(client, 1);
        waiting.cancel(false);
        Wait.forWaiters(client, 0);
        assertEquals(
                2,
                mailers.withPermitAsync(
                                permit -> CompletableFuture.completedFuture(1 + permit.permits()))
                        .get(30, TimeUnit.SECONDS));
        two.close();
        CompletableFuture<Object> failed =
                mailers.withPermitsAsync(
                        3, permits -> CompletableFuture.failedFuture(new IllegalStateException()));
        ExecutionException failure =
                assertThrows(ExecutionException.class, () -> failed.get(30, TimeUnit.SECONDS));
        assertInstanceOf(IllegalStateException.class, failure.getCause());
        assertEquals(3, mailers.availablePermits());
    }

    @Test
    void aLostPermitHasComeBackAlready() throws Exception {
        assumeTrue(client.capabilities().leases(), "explicit leases");
        Permit kept = mailers.acquire();
        Permit brief = mailers.withLease(Duration.ofMillis(150)).acquire(2);
        assertEquals(LossReason.ENDED, brief.lost().get(30, TimeUnit.SECONDS));
        try (Permit two = mailers.acquire(2, Duration.ofSeconds(30))) {
            assertThrows(LockLostException.class, brief::close);
            assertTrue(two.isValid() && kept.isValid());
            assertEquals(0, mailers.availablePermits());
        }
        assertFalse(kept.lost().isDone());
        kept.close();
        DistributedSemaphore bounded =
                mailers.withMaxHold(Duration.ofMillis(150)).withInterruptOnLoss();
        Permit ended = bounded.acquire();
        Wait.until("the loss interrupts", Thread::interrupted);
        assertThrows(LockLostException.class, ended::release);
    }

    @Test
    void closingTellsWhoHasSomeAndWhoWaits() throws Exception {
        FencelockClient other = another();
        DistributedSemaphore theirs = other.semaphore(mailers.name(), 3);
        Permit two = theirs.acquire(2);
        Threads.Run<Permit> waiting = Threads.start(() -> theirs.acquire(2));
        Wait.forWaiters(other, 1);
        other.close();
        assertInstanceOf(ClientClosedException.class, waiting.failure());
        assertEquals(LossReason.CLOSED, two.lost().get(30, TimeUnit.SECONDS));
        assertThrows(LockLostException.class, two::close);
        mailers.acquire(3, Duration.ofSeconds(30)).close();
    }

    @Test
    void permitsOfAKilledProcessComeBack() throws Exception {
        assumeTrue(store.processes(), "a store for several processes");
        try (Jvm child =
                Jvm.start(List.of(), Child.class.getName(), store.url(), mailers.name())) {
            child.expect("held");
            assertEquals(1, mailers.availablePermits());
            assertNull(mailers.tryAcquire(2));
        }
        mailers.acquire(3, Duration.ofSeconds(60)).close();
    }

    /** Takes two of three, and is killed. */
    static final class Child {
        public static void main(String[] arguments) throws Exception {
            FencelockClient client =
                    FencelockClient.builder(arguments[0]).lease(Duration.ofSeconds(3)).connect();
            Permit two = client.semaphore(arguments[1], 3).acquire(2);
            System.out.println("held");
            while (two.permits() == 2) {
                LockSupport.park();
            }
        }
    }

    @Test
    void anInspectionShowsWhoHasHowMany() throws Exception {
        Permit two = mailers.acquire(2);
        CompletableFuture<Permit> waiting = mailers.acquireAsync(3);
        LockInfo seen = withAWaiter(client, mailers.name());
        LockInfo.HoldInfo hold = seen.holds().get(0);
        assertSame(LockMode.PERMITS, hold.mode());
        assertEquals(List.of(2, 3), List.of(hold.permits(), hold.of()));
        assertEquals(two.token(), hold.token());
        assertNull(hold.owner());
        assertEquals(3, seen.waiters().get(0).permits());
        assertSame(LockMode.PERMITS, seen.waiters().get(0).mode());
        two.close();
        waiting.get(30, TimeUnit.SECONDS).close();
    }

    /** What a store says of a lock once somebody stands in its queue. */
    static LockInfo withAWaiter(FencelockClient client, String name) {
        LockInfo[] seen = new LockInfo[1];
        Wait.until(
                "a waiter at the store",
                () -> {
                    seen[0] = client.inspect(name).orElseThrow();
                    return seen[0].waiters().size() == 1;
                });
        return seen[0];
    }

    @Test
    void permitsThatNobodyCanReachComeBack() throws Exception {
        forget();
        Wait.until(
                "the permits come back",
                () -> {
                    System.gc();
                    return mailers.availablePermits() == 3;
                });
    }

    private void forget() throws InterruptedException {
        assertEquals(2, mailers.acquire(2).permits());
    }
}
