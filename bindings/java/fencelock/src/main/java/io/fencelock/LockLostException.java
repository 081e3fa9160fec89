package io.fencelock;

/** The hold ended before it was released: stop the work, another may hold the lock by now. */
public final class LockLostException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public LockLostException(String message) {
        super(ErrorCode.LOST, message);
    }
}
