package io.fencelock;

/** A defect of Fencelock itself. Please report it. */
public final class InternalErrorException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public InternalErrorException(String message) {
        super(ErrorCode.INTERNAL, message);
    }
}
