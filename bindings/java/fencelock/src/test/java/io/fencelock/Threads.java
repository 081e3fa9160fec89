package io.fencelock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

/** Threads whose failures are seen. */
final class Threads {
    private Threads() {}

    /** A thread that gives a value or fails. */
    static final class Run<T> {
        final Thread thread;
        private final FutureTask<T> task;

        private Run(Callable<T> body) {
            task = new FutureTask<>(body);
            thread = new Thread(task);
            thread.setDaemon(true);
        }

        T join() {
            try {
                return task.get(60, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                throw new AssertionError(e.getCause());
            } catch (Exception e) {
                throw new AssertionError("the thread does not end", e);
            }
        }

        boolean isDone() {
            return task.isDone();
        }

        /** What it fails with. */
        Throwable failure() {
            try {
                throw new AssertionError("gave " + task.get(60, TimeUnit.SECONDS));
            } catch (ExecutionException e) {
                return e.getCause();
            } catch (InterruptedException | java.util.concurrent.TimeoutException e) {
                throw new AssertionError("the thread does not end", e);
            }
        }
    }

    static <T> Run<T> start(Callable<T> body) {
        Run<T> run = new Run<>(body);
        run.thread.start();
        return run;
    }

    /** So many threads that do the same; waits for all of them. */
    static void all(int count, Callable<?> body) {
        List<Run<?>> runs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            runs.add(start(body));
        }
        runs.forEach(Run::join);
    }
}
