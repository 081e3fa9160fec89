package io.fencelock;

/** The store, or this version, cannot do what was asked. */
public final class UnsupportedByStoreException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public UnsupportedByStoreException(String message) {
        super(ErrorCode.UNSUPPORTED, message);
    }
}
