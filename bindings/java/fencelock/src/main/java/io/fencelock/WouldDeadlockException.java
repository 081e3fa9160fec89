package io.fencelock;

/** The owner has the lock shared already and wants it for itself: it would wait for its own hold. */
public final class WouldDeadlockException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public WouldDeadlockException(String message) {
        super(ErrorCode.WOULD_DEADLOCK, message);
    }
}
