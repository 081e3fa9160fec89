package io.fencelock;

/**
 * The caller does not hold the lock, or has released it already. As {@link
 * java.util.concurrent.locks.Lock#unlock} suggests, it is an {@link IllegalMonitorStateException},
 * and so no {@link FencelockException}: it tells of a mistake in the program, not of the store.
 */
public final class NotHeldException extends IllegalMonitorStateException
        implements FencelockFailure {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public NotHeldException(String message) {
        super(message);
    }

    @Override
    public ErrorCode code() {
        return ErrorCode.NOT_HELD;
    }
}
