package io.fencelock;

/** The client was closed. */
public final class ClientClosedException extends FencelockException {
    private static final long serialVersionUID = 1L;

    ClientClosedException(String message) {
        super(ErrorCode.CLOSED, message);
    }
}
