package io.fencelock;

/** Another holder has the lock, or waits for it, and the caller did not want to wait. */
public final class LockContendedException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public LockContendedException(String message) {
        super(ErrorCode.CONTENDED, message);
    }
}
