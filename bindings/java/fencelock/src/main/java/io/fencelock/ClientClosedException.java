package io.fencelock;

/** The client was closed. */
public final class ClientClosedException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public ClientClosedException(String message) {
        super(ErrorCode.CLOSED, message);
    }
}
