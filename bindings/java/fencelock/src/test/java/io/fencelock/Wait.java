package io.fencelock;

import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;

/** Waits for a condition, with a generous bound. */
final class Wait {
    private Wait() {}

    static void until(String what, Callable<Boolean> condition) {
        long end = System.nanoTime() + 30_000_000_000L;
        try {
            while (!condition.call()) {
                if (System.nanoTime() - end > 0) {
                    throw new AssertionError("in 30 s this did not come true: " + what);
                }
                LockSupport.parkNanos(1_000_000);
            }
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Exception e) {
            throw new AssertionError(what, e);
        }
    }

    /** Until so many acquires wait in a client. */
    static void forWaiters(FencelockClient client, int count) {
        until(count + " waiters", () -> waiting(client) == count);
    }

    static int waiting(FencelockClient client) {
        return client.metrics()
                .lines()
                .filter(line -> line.startsWith("fencelock_waiting "))
                .mapToInt(line -> (int) Double.parseDouble(line.substring(line.indexOf(' ') + 1)))
                .findFirst()
                .orElseThrow();
    }
}
