package io.fencelock;

/**
 * The owner reads, and asks to write: it would wait for its own hold. Told at once, with nothing
 * queued. Release the read first, or write from the start. A mistake in the program, as {@link
 * NotHeldException} is, and so an {@link IllegalMonitorStateException} too.
 */
public final class WouldDeadlockException extends IllegalMonitorStateException
        implements FencelockFailure {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public WouldDeadlockException(String message) {
        super(message);
    }

    @Override
    public ErrorCode code() {
        return ErrorCode.WOULD_DEADLOCK;
    }
}
