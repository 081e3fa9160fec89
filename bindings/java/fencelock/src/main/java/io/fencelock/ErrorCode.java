package io.fencelock;

/** What can go wrong. The numbers are the same in every language, and are never reused. */
public enum ErrorCode {
    /** Another holder has the lock, or waits for it, and the caller did not want to wait. */
    CONTENDED(1, "contended", true),
    /** The bound of the wait passed while others held the lock. */
    TIMED_OUT(2, "timed_out", true),
    /** The wait was cancelled by its caller. */
    CANCELLED(3, "cancelled", false),
    /** The store could not be reached, or did not answer, within the bound of the call. */
    UNAVAILABLE(4, "unavailable", true),
    /** The hold ended before its holder released it: its lease ran out, or it was broken. */
    LOST(5, "lost", false),
    /** The caller does not hold the lock, or has released it already. */
    NOT_HELD(6, "not_held", false),
    /** The store refuses for a reason that only an operator can mend. */
    MISCONFIGURED(7, "misconfigured", false),
    /** An argument is out of its range. */
    INVALID_ARGUMENT(8, "invalid_argument", false),
    /** The store, or this version, cannot do what was asked. */
    UNSUPPORTED(9, "unsupported", false),
    /** The client was closed. */
    CLOSED(10, "closed", false),
    /** The owner has the lock shared already and wants it for itself: it would wait for its own hold. */
    WOULD_DEADLOCK(11, "would_deadlock", false),
    /** A defect of Fencelock itself. Please report it. */
    INTERNAL(100, "internal", false);

    private final int number;
    private final String label;
    private final boolean retryable;

    ErrorCode(int number, String label, boolean retryable) {
        this.number = number;
        this.label = label;
        this.retryable = retryable;
    }

    /**
     * The fixed number.
     *
     * @return 1 to 11, or 100
     */
    public int number() {
        return number;
    }

    /**
     * The fixed name, the same in every language.
     *
     * @return the name in lower case, with underscores
     */
    public String label() {
        return label;
    }

    /**
     * Whether the same call may succeed later without anybody changing anything.
     *
     * @return true for {@link #CONTENDED}, {@link #TIMED_OUT} and {@link #UNAVAILABLE}
     */
    public boolean isRetryable() {
        return retryable;
    }

    static ErrorCode of(int number) {
        for (ErrorCode code : values()) {
            if (code.number == number) {
                return code;
            }
        }
        return INTERNAL;
    }
}
