package io.fencelock;

/** The wait was cancelled by its caller. */
public final class LockCancelledException extends FencelockException {
    private static final long serialVersionUID = 1L;

    LockCancelledException(String message) {
        super(ErrorCode.CANCELLED, message);
    }
}
