package io.fencelock;

/** The store could not be reached, or did not answer, within the bound of the call. */
public final class StoreUnavailableException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public StoreUnavailableException(String message) {
        super(ErrorCode.UNAVAILABLE, message);
    }
}
