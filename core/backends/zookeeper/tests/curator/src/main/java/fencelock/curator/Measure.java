package fencelock.curator;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/** What the benchmark measures of Curator, in nanoseconds. */
final class Measure {
    private Measure() {}

    /**
     * {@code pairs}: one thread acquires and releases. {@code paths64}: 64 threads, each on a path of
     * its own. {@code hot16}, {@code hot4}: so many threads on one path. Each does its part of
     * {@code count} pairs, and the time is that of all.
     */
    static long run(String kind, CuratorFramework client, String path, int count) throws Exception {
        return switch (kind) {
            case "pairs" -> together(client, path, 1, false, count);
            case "paths64" -> together(client, path, 64, true, count);
            case "hot16" -> together(client, path, 16, false, count);
            case "hot4" -> together(client, path, 4, false, count);
            default -> throw new IllegalArgumentException(kind);
        };
    }

    private static long together(
            CuratorFramework client, String path, int threads, boolean apart, int count)
            throws Exception {
        InterProcessMutex shared = new InterProcessMutex(client, path);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            CountDownLatch ready = new CountDownLatch(threads);
            CountDownLatch go = new CountDownLatch(1);
            List<Future<?>> ends = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                int turns = count / threads + (thread < count % threads ? 1 : 0);
                InterProcessMutex lock =
                        apart ? new InterProcessMutex(client, path + "/" + thread) : shared;
                ends.add(pool.submit(() -> {
                    ready.countDown();
                    go.await();
                    for (int turn = 0; turn < turns; turn++) {
                        lock.acquire();
                        lock.release();
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
