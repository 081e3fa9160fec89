package io.fencelock;

/** The wait was cancelled by its caller. */
public final class LockCancelledException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public LockCancelledException(String message) {
        super(ErrorCode.CANCELLED, message);
    }
}
