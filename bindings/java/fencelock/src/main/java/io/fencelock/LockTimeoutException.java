package io.fencelock;

/** The bound of the wait passed while others held the lock. */
public final class LockTimeoutException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public LockTimeoutException(String message) {
        super(ErrorCode.TIMED_OUT, message);
    }
}
