package io.fencelock;

/** How a hold shares the lock with others. */
public enum LockMode {
    /** It has the lock for itself: a writer, and every hold of a plain lock. */
    EXCLUSIVE,
    /** A reader, beside others. */
    SHARED,
    /** It has permits of a semaphore. */
    PERMITS;

    /** The mode with this number at the native side. */
    static LockMode of(long number) {
        return values()[(int) number];
    }
}
