package io.fencelock;

/**
 * What every exception of Fencelock can tell. All of them are {@link FencelockException}s but the two
 * that tell of a mistake in the program, {@link NotHeldException} and {@link WouldDeadlockException}:
 * they have to be {@link IllegalMonitorStateException}s, because that is what {@link
 * java.util.concurrent.locks.Lock} promises.
 */
public sealed interface FencelockFailure
        permits FencelockException, NotHeldException, WouldDeadlockException {
    /**
     * What went wrong.
     *
     * @return the code, the same in every language
     */
    ErrorCode code();

    /**
     * Whether the same call may succeed later without anybody changing anything.
     *
     * @return {@link ErrorCode#isRetryable} of the code
     */
    default boolean isRetryable() {
        return code().isRetryable();
    }
}
