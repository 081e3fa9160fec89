package io.fencelock;

/** The store refuses for a reason that only an operator can mend, such as a password. */
public final class StoreMisconfiguredException extends FencelockException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests: the client makes its own.
     *
     * @param message what happened, and what to do
     */
    public StoreMisconfiguredException(String message) {
        super(ErrorCode.MISCONFIGURED, message);
    }
}
