package io.fencelock;

import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;

/** Where the code that hangs on our futures runs. */
final class Tasks {
    private Tasks() {}

    /**
     * An executor that refuses, or cannot make a thread, must not cost anybody a completion. The
     * task may be run twice: one that runs it at once may fail afterwards.
     */
    static void run(Executor executor, Runnable task) {
        try {
            executor.execute(task);
        } catch (RuntimeException | Error e) {
            ForkJoinPool.commonPool().execute(task);
        }
    }
}
