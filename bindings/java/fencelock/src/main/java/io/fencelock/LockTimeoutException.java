package io.fencelock;

/** The bound of the wait passed while others held the lock. */
public final class LockTimeoutException extends FencelockException {
    private static final long serialVersionUID = 1L;

    LockTimeoutException(String message) {
        super(ErrorCode.TIMED_OUT, message);
    }
}
