package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The methods that give a CompletableFuture. */
class AsyncTest extends StoreTest {
    private static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(30, TimeUnit.SECONDS);
    }

    private static Throwable failure(CompletableFuture<?> future) {
        return assertThrows(
                        ExecutionException.class, () -> future.get(30, TimeUnit.SECONDS))
                .getCause();
    }

    @Test
    void acquireAndRelease() throws Exception {
        Hold hold = get(lock.acquireAsync());
        assertTrue(hold.isValid());
        assertTrue(get(lock.isLockedAsync()));
        get(hold.releaseAsync());
        assertFalse(get(lock.isLockedAsync()));
        assertInstanceOf(NotHeldException.class, failure(hold.releaseAsync()));
        assertInstanceOf(NotHeldException.class, failure(hold.extendAsync(Duration.ofMinutes(1))));
        get(lock.acquireAsync(Duration.ofSeconds(10)).thenCompose(Hold::releaseAsync));
        get(lock.tryAcquireAsync().thenCompose(Hold::releaseAsync));
    }

    @Test
    void theWaitIsBounded() throws Exception {
        try (Hold hold = lock.acquire()) {
            assertInstanceOf(
                    LockTimeoutException.class, failure(lock.acquireAsync(Duration.ofMillis(20))));
            assertInstanceOf(
                    LockContendedException.class, failure(lock.acquireAsync(Duration.ZERO)));
            assertNull(get(lock.tryAcquireAsync()));
            assertNull(get(lock.tryAcquireAsync(Duration.ofMillis(20))));
            assertTrue(hold.isValid());
        }
    }

    @Test
    void everyWayOfGivingUpLeavesTheQueue() throws Exception {
        Hold hold = lock.acquire();
        CompletableFuture<Hold> cancelled = lock.acquireAsync();
        CompletableFuture<Hold> timedOut = lock.acquireAsync().orTimeout(10, TimeUnit.MILLISECONDS);
        CompletableFuture<Hold> failed = lock.acquireAsync();
        assertTrue(cancelled.cancel(true));
        failed.completeExceptionally(new IllegalStateException("no longer"));
        assertThrows(ExecutionException.class, () -> get(timedOut));
        Wait.forWaiters(client, 0);
        CompletableFuture<Hold> next = lock.acquireAsync();
        hold.release();
        get(next).release();
    }

    @Test
    void aGrantThatNobodyWantsAnyMoreIsGivenBack() throws Exception {
        for (int i = 0; i < 200; i++) {
            Hold hold = lock.acquire();
            CompletableFuture<Hold> waiter = lock.acquireAsync();
            Threads.Run<?> canceller = Threads.start(() -> waiter.cancel(false));
            hold.release();
            canceller.join();
            if (!waiter.isCancelled()) {
                waiter.get().release();
            }
        }
        assertTrue(lock.tryLock(30, TimeUnit.SECONDS));
        lock.unlock();
    }

    @Test
    void whatHangsOnAFutureRunsOnTheExecutor() throws Exception {
        Set<String> threads = ConcurrentHashMap.newKeySet();
        ExecutorService executor =
                Executors.newSingleThreadExecutor(task -> new Thread(task, "chosen"));
        try (FencelockClient chosen =
                FencelockClient.builder(store.url()).executor(executor).connect()) {
            DistributedLock theirs = chosen.lock(lock.name());
            Hold hold = lock.acquire();
            CompletableFuture<Void> done =
                    theirs.acquireAsync()
                            .thenAccept(
                                    granted -> {
                                        threads.add(Thread.currentThread().getName());
                                        // Blocking is allowed here.
                                        granted.release();
                                    });
            hold.release();
            get(done);
            assertEquals(Set.of("chosen"), threads);
        } finally {
            executor.shutdownNow();
        }
    }

    @Test
    void anExecutorThatRefusesCostsNoCompletion() throws Exception {
        try (FencelockClient chosen =
                FencelockClient.builder(store.url())
                        .executor(
                                task -> {
                                    throw new RejectedExecutionException("shut down");
                                })
                        .connect()) {
            Hold hold = lock.acquire();
            CompletableFuture<Hold> waiter = chosen.lock(lock.name()).acquireAsync();
            hold.release();
            get(waiter).release();
        }
    }

    @Test
    void aHundredTasksExcludeEachOther() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            all.add(
                    lock.acquireAsync()
                            .thenCompose(
                                    hold -> {
                                        assertEquals(1, inside.incrementAndGet());
                                        inside.decrementAndGet();
                                        return hold.releaseAsync();
                                    }));
        }
        get(CompletableFuture.allOf(all.toArray(new CompletableFuture<?>[0])));
        assertFalse(lock.isLocked());
    }

    @Test
    void aBlockedContinuationStopsNobodyElse() throws Exception {
        CountDownLatch open = new CountDownLatch(1);
        Hold hold = lock.acquire();
        CompletableFuture<Void> stuck =
                lock.acquireAsync()
                        .thenAccept(
                                granted -> {
                                    try {
                                        open.await();
                                    } catch (InterruptedException e) {
                                        throw new IllegalStateException(e);
                                    }
                                    granted.release();
                                });
        hold.release();
        DistributedLock other = client.lock(name("other"));
        Hold first = other.acquire();
        CompletableFuture<Hold> second = other.acquireAsync();
        first.release();
        get(second).release();
        open.countDown();
        get(stuck);
    }

    @Test
    void whoWaitsWithinAClientIsCounted() throws Exception {
        List<CompletableFuture<Hold>> waiting = new ArrayList<>();
        try (Hold hold = lock.acquire();
                FencelockClient other = another()) {
            for (int i = 0; i < 3; i++) {
                waiting.add(lock.acquireAsync());
            }
            LockInfo own = client.inspect(lock.name()).orElseThrow();
            assertEquals(OptionalInt.of(3), own.holds().get(0).localWaiters());
            assertEquals(3, own.waiting());
            assertEquals(hold.token(), own.token());
            assertTrue(own.waiters().isEmpty());
            // As of the latest renewal, where the store keeps it.
            LockInfo seen = other.inspect(lock.name()).orElseThrow();
            assertEquals(
                    !client.capabilities().store().equals("zookeeper"),
                    seen.holds().get(0).localWaiters().isPresent());
        }
        for (CompletableFuture<Hold> each : waiting) {
            get(each).release();
        }
    }

    @Test
    void theClientsOwnCallsAreAsynchronousToo() throws Exception {
        FencelockClient other = get(FencelockClient.builder(store.url()).connectAsync());
        assertTrue(get(other.pingAsync()).toEpochMilli() > 0);
        try (Hold hold = lock.acquire()) {
            LockInfo info = get(other.inspectAsync(lock.name())).orElseThrow();
            assertEquals(hold.token(), info.token());
            assertEquals(client.id(), info.holds().get(0).client());
            assertTrue(get(other.listAsync(lock.name(), 10)).contains(lock.name()));
            Broken kept = get(other.breakLockAsync(lock.name(), hold.token() - 2000));
            assertTrue(kept.changedHands().orElseThrow() <= hold.token());
            assertEquals(1, get(other.breakLockAsync(lock.name(), hold.token())).ended());
            hold.lost().get(30, TimeUnit.SECONDS);
            assertThrows(LockLostException.class, hold::release);
        }
        assertTrue(get(other.inspectAsync(name("never seen"))).isEmpty());
        get(other.closeAsync(Duration.ZERO));
        assertTrue(other.isClosed());
        assertInstanceOf(ClientClosedException.class, failure(other.pingAsync()));
        assertInstanceOf(
                InvalidArgumentException.class,
                failure(FencelockClient.builder("carrier-pigeon://roof").connectAsync()));
    }
}
