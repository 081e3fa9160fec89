package io.fencelock;

/** The store, or this version, cannot do what was asked. */
public final class UnsupportedByStoreException extends FencelockException {
    private static final long serialVersionUID = 1L;

    UnsupportedByStoreException(String message) {
        super(ErrorCode.UNSUPPORTED, message);
    }
}
