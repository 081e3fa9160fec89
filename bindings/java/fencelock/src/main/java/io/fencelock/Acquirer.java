package io.fencelock;

import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** What acquires something of a client, for the thread that waits or for a future. */
abstract class Acquirer<H extends Hold> {
    /** For how long a platform thread waits in native code, in nanoseconds. */
    private static final long DRIVE = 10_000_000;

    abstract NativeClient client();

    /** What is waited for, in a message. */
    abstract String what();

    /** Begins for the calling thread, or for whoever the options say. */
    abstract long begin(long timeout, long block, Completion completion);

    /** Begins for a task that has no thread of its own. */
    abstract long beginForTask(long timeout, Completion completion);

    /** What a native hold is to the caller. */
    abstract H hold(long handle, boolean interrupts);

    /** Waits; an interrupt does not end it. 0 for a status in {@code quiet}. */
    final long waitFor(long timeout, int quiet) {
        return wait(timeout, false).result(quiet);
    }

    /** As above, but an interrupt ends it, unless the grant came before it. */
    final long waitInterruptibly(long timeout, int quiet) throws InterruptedException {
        Parking ended = wait(timeout, true);
        if (ended.cancelled()) {
            Thread.interrupted();
            throw new InterruptedException("interrupted while waiting for " + what());
        }
        return ended.result(quiet);
    }

    /**
     * A platform thread drives the connection for a while, which costs no switch of threads, and
     * parks when it takes long.
     */
    private Parking wait(long timeout, boolean interruptibly) {
        Parking parking = new Parking(this);
        long block = VirtualThreads.current() ? 0 : DRIVE;
        long operation = begin(timeout, block, parking);
        try {
            return parking.await(interruptibly ? operation : 0);
        } finally {
            if (operation != 0) {
                Native.freeOperation(operation);
            }
        }
    }

    /** Gives null for a status in {@code quiet}. */
    final CompletableFuture<@Nullable H> start(long timeout, int quiet) {
        return Deferred.start(
                client().executor(),
                quiet,
                (handle, nothing) -> hold(handle, false),
                Native::freeHold,
                completion -> beginForTask(timeout, completion));
    }

    static void checkInterrupt() throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }
}
