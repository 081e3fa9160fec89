package io.fencelock;

import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A virtual thread that waits for an asynchronous call. It parks in Java, so that its carrier goes
 * on with others; waiting in native code would pin it.
 */
final class Parking extends Completion {
    private final Thread waiter = Thread.currentThread();
    private int status;
    private long result;
    private long number;
    private byte @Nullable [] message;

    /** Written last, read first. */
    private volatile boolean ended;

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
            LockSupport.park(this);
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

    /** The handle that came of it; or, for a status in {@code quiet}, its number below zero. */
    long result(int quiet) {
        if (status == 0) {
            return result;
        }
        if (status < 31 && (quiet & 1 << status) != 0) {
            return -status;
        }
        throw failure(status, message);
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
