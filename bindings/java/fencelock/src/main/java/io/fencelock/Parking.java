package io.fencelock;

import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A thread that waits for an asynchronous call, parked in Java: a virtual one leaves its carrier to
 * others, which waiting in native code would pin, and a dump shows what a platform thread waits for.
 */
final class Parking extends Completion {
    private final Thread waiter = Thread.currentThread();

    /** What a dump of the threads says that is waited for. */
    private final Object blocker;

    private int status;
    private long result;
    private long number;
    private byte @Nullable [] message;

    /** Written last, read first. */
    private volatile boolean ended;

    Parking(Object blocker) {
        this.blocker = blocker;
    }

    @Override
    void done(int status, long result, long number, byte @Nullable [] message) {
        this.status = status;
        this.result = result;
        this.number = number;
        this.message = message;
        ended = true;
        LockSupport.unpark(waiter);
    }

    /** Waits, whatever happens; the thread's interrupt status is kept. */
    Parking await() {
        return await(0);
    }

    /**
     * Waits. An interrupt cancels {@code operation}, unless that is 0, and goes on waiting for what
     * comes of it; the thread's interrupt status is kept.
     */
    Parking await(long operation) {
        boolean interrupted = false;
        while (!ended) {
            LockSupport.park(blocker);
            if (Thread.interrupted()) {
                if (!interrupted && operation != 0) {
                    Native.cancelOperation(operation);
                }
                interrupted = true;
            }
        }
        if (interrupted) {
            waiter.interrupt();
        }
        return this;
    }

    /** Whether it was cancelled. */
    boolean cancelled() {
        return isQuiet(CANCELLED, status);
    }

    /** The handle that came of it; 0 for a status in {@code quiet}. A handle may be below zero. */
    long result(int quiet) {
        if (status != 0 && !isQuiet(quiet, status)) {
            throw failure(status, message);
        }
        return result;
    }

    /** Whether it succeeded; false for a status in {@code quiet}. */
    boolean succeeded(int quiet) {
        result(quiet);
        return status == 0;
    }

    /** The handle that came of it. */
    long result() {
        return result(0);
    }

    /** The number that came of it. */
    long number() {
        result(0);
        return number;
    }
}
