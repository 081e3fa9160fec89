package io.fencelock;

/**
 * What every exception of Fencelock can tell. All of them are {@link FencelockException}s but
 * {@link NotHeldException}, which has to be an {@link IllegalMonitorStateException}, because that is
 * what {@link java.util.concurrent.locks.Lock} promises.
 */
public sealed interface FencelockFailure permits FencelockException, NotHeldException {
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
