package io.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Executors that lose, refuse or fail what they are given: no grant is lost with it. */
class ExecutorTest extends StoreTest {
    /** A grant on its way through an executor. */
    private final class Granted implements AutoCloseable {
        final FencelockClient own;
        final CompletableFuture<Hold> future;

        Granted(Executor executor) throws InterruptedException {
            own = FencelockClient.builder(store.url()).executor(executor).connect();
            Hold first = lock.acquire();
            future = own.lock(lock.name()).acquireAsync();
            Wait.forWaiters(own, 1);
            first.release();
        }

        /** The grant is nobody's: others get the lock. */
        void isGivenBack() throws InterruptedException {
            Wait.until(
                    "the lock is free",
                    () -> {
                        System.gc();
                        return !lock.isLocked();
                    });
            lock.acquire().release();
        }

        @Override
        public void close() {
            own.close();
        }
    }

    @Test
    void anExecutorThatThrowsTasksAwayLosesNoGrant() throws Exception {
        try (Granted granted = new Granted(task -> {})) {
            granted.isGivenBack();
            ExecutionException e =
                    assertThrows(
                            ExecutionException.class,
                            () -> granted.future.get(30, TimeUnit.SECONDS));
            assertInstanceOf(RejectedExecutionException.class, e.getCause());
        }
    }

    @Test
    void aPoolThatIsShutDownLosesNoGrant() throws Exception {
        ThreadPoolExecutor pool =
                new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        CountDownLatch busy = new CountDownLatch(1);
        pool.execute(
                () -> {
                    try {
                        busy.await();
                    } catch (InterruptedException e) {
                        // It is shut down.
                    }
                });
        try (Granted granted = new Granted(pool)) {
            Wait.until("the grant is in the queue", () -> pool.getQueue().size() == 1);
            assertEquals(1, pool.shutdownNow().size());
            granted.isGivenBack();
        } finally {
            busy.countDown();
        }
    }

    @Test
    void anExecutorThatCannotMakeAThreadLosesNoGrant() throws Exception {
        Executor exhausted =
                task -> {
                    throw new OutOfMemoryError("unable to create native thread");
                };
        try (Granted granted = new Granted(exhausted)) {
            granted.future.get(30, TimeUnit.SECONDS).release();
            granted.isGivenBack();
        }
    }

    /** Nobody has to wait for the collector. */
    @Test
    void aGrantInTheQueueOfAnExecutorCanBeCancelled() throws Exception {
        LinkedBlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
        try (Granted granted = new Granted(tasks::add)) {
            Wait.until("the grant is in the queue", () -> tasks.size() == 1);
            assertTrue(granted.future.cancel(false));
            Wait.until("the lock is free", () -> !lock.isLocked());
            List.copyOf(tasks).forEach(Runnable::run);
            assertTrue(granted.future.isCancelled());
            granted.isGivenBack();
        }
    }
}
