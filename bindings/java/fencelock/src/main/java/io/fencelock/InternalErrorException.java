package io.fencelock;

/** A defect of Fencelock itself. Please report it. */
public final class InternalErrorException extends FencelockException {
    private static final long serialVersionUID = 1L;

    InternalErrorException(String message) {
        super(ErrorCode.INTERNAL, message);
    }
}
