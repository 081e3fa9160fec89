package io.fencelock;

/** Whether the previous holder was lost instead of releasing the lock. */
public enum Abandoned {
    /** It released the lock. */
    NO,
    /** It was lost: what the lock protects may be half done. */
    YES,
    /** Nobody can tell, as with the first grant of a lock that the store has never seen. */
    UNKNOWN;

    static Abandoned of(long number) {
        return number == 0 ? NO : number == 1 ? YES : UNKNOWN;
    }
}
