package io.fencelock;

/** An argument is out of its range. */
public final class InvalidArgumentException extends FencelockException {
    private static final long serialVersionUID = 1L;

    InvalidArgumentException(String message) {
        super(ErrorCode.INVALID_ARGUMENT, message);
    }
}
