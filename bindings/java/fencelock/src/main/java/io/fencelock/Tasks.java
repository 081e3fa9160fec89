package io.fencelock;

import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;

/** Where the code that hangs on our futures runs. */
final class Tasks {
    private Tasks() {}

    /** An executor that refuses must not cost anybody a completion. */
    static void run(Executor executor, Runnable task) {
        try {
            executor.execute(task);
        } catch (RejectedExecutionException e) {
            ForkJoinPool.commonPool().execute(task);
        }
    }
}
