package fencelock.curator;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;

/** What the benchmark measures of Curator, in nanoseconds. */
final class Measure {
    private Measure() {}

    /**
     * {@code pairs}: one thread acquires and releases. {@code paths64}: 64 threads, each on a path of
     * its own. {@code hot16}, {@code hot4}: so many threads on one path. {@code read1}, {@code read16}: so
     * many threads read. {@code mostly4}: four threads, nine in ten of whose turns read, and one writes.
     * {@code permits1}, {@code permits4}: so many threads on a semaphore of four. Each does its part of
     * {@code count} pairs, and the time is that of all.
     */
    static long run(String kind, CuratorFramework client, String path, int count) throws Exception {
        return switch (kind) {
            case "pairs" -> mutex(client, path, 1, false, count);
            case "paths64" -> mutex(client, path, 64, true, count);
            case "hot16" -> mutex(client, path, 16, false, count);
            case "hot4" -> mutex(client, path, 4, false, count);
            case "read1" -> readers(client, path, 1, 100, count);
            case "read16" -> readers(client, path, 16, 100, count);
            case "mostly4" -> readers(client, path, 4, 90, count);
            case "permits1" -> permits(client, path, 1, count);
            case "permits4" -> permits(client, path, 4, count);
            default -> throw new IllegalArgumentException(kind);
        };
    }

    /** One acquire and its release. */
    private interface Pair {
        void run(int turn) throws Exception;
    }

    private static long mutex(
            CuratorFramework client, String path, int threads, boolean apart, int count)
            throws Exception {
        InterProcessMutex shared = new InterProcessMutex(client, path);
        return together(threads, count, thread -> {
            InterProcessMutex lock =
                    apart ? new InterProcessMutex(client, path + "/" + thread) : shared;
            return turn -> {
                lock.acquire();
                lock.release();
            };
        });
    }

    private static long readers(
            CuratorFramework client, String path, int threads, int percent, int count)
            throws Exception {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        return together(threads, count, thread -> turn -> {
            // Not all write at once.
            boolean reads = (turn + 3 * thread) % 10 < percent / 10;
            InterProcessMutex side = reads ? lock.readLock() : lock.writeLock();
            side.acquire();
            side.release();
        });
    }

    private static long permits(CuratorFramework client, String path, int threads, int count)
            throws Exception {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 4);
        return together(
                threads, count, thread -> turn -> semaphore.returnLease(semaphore.acquire()));
    }

    private static long together(int threads, int count, IntFunction<Pair> pairs) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            CountDownLatch ready = new CountDownLatch(threads);
            CountDownLatch go = new CountDownLatch(1);
            List<Future<?>> ends = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                int turns = count / threads + (thread < count % threads ? 1 : 0);
                Pair pair = pairs.apply(thread);
                ends.add(pool.submit(() -> {
                    ready.countDown();
                    go.await();
                    for (int turn = 0; turn < turns; turn++) {
                        pair.run(turn);
                    }
                    return null;
                }));
            }
            ready.await();
            long start = System.nanoTime();
            go.countDown();
            for (Future<?> end : ends) {
                end.get();
            }
            return System.nanoTime() - start;
        } finally {
            pool.shutdown();
        }
    }
}
