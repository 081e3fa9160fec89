package io.fencelock;

import org.jspecify.annotations.Nullable;

/** What the native side calls when an asynchronous call has ended. */
abstract class Completion {
    /** What {@code quiet} is made of: statuses that are no failures. */
    static final int CONTENDED = 1 << 1;

    static final int TIMED_OUT = 1 << 2;
    static final int CANCELLED = 1 << 3;

    /**
     * Called once, either by the thread that began the call, before that returns, or by the
     * library's only callback thread: it must not block, nor run anybody's code but ours.
     *
     * @param status 0, or the number of an {@link ErrorCode}
     * @param result the handle that came of it, or 0
     * @param number the number that came of it
     * @param message in UTF-8, unless status is 0
     */
    abstract void done(int status, long result, long number, byte @Nullable [] message);

    /** Whether a status is among those that are no failures. */
    static boolean isQuiet(int quiet, int status) {
        return status != 0 && status < 31 && (quiet & 1 << status) != 0;
    }

    static RuntimeException failure(int status, byte @Nullable [] message) {
        String text = message == null ? ErrorCode.of(status).label() : Text.decode(message);
        return FencelockException.of(status, text);
    }
}
