package io.fencelock;

/** The store refuses for a reason that only an operator can mend, such as a password. */
public final class StoreMisconfiguredException extends FencelockException {
    private static final long serialVersionUID = 1L;

    StoreMisconfiguredException(String message) {
        super(ErrorCode.MISCONFIGURED, message);
    }
}
