package io.fencelock;

/** The store could not be reached, or did not answer, within the bound of the call. */
public final class StoreUnavailableException extends FencelockException {
    private static final long serialVersionUID = 1L;

    StoreUnavailableException(String message) {
        super(ErrorCode.UNAVAILABLE, message);
    }
}
