package io.fencelock;

/** Why a hold ended before its release. */
public enum LossReason {
    /** Its explicit lease, or its ceiling, ended. */
    ENDED(1, "its lease or maxHold ended"),
    /** It could not be renewed in time. */
    NOT_RENEWED(2, "it could not be renewed in time"),
    /** The store no longer knows it: it lost its memory, or gave the lock away. */
    GONE(3, "the store no longer knows it"),
    /** An operator broke it. */
    BROKEN(4, "an operator broke it"),
    /** The client was closed. */
    CLOSED(5, "the client was closed");

    private final int number;
    private final String description;

    LossReason(int number, String description) {
        this.number = number;
        this.description = description;
    }

    /**
     * What happened, for a person.
     *
     * @return a few words
     */
    public String describe() {
        return description;
    }

    static LossReason of(int number) {
        for (LossReason reason : values()) {
            if (reason.number == number) {
                return reason;
            }
        }
        return GONE;
    }
}
