package io.fencelock;

/** What the native side calls when something befalls a hold. */
interface Notice {
    /**
     * Called at most once, by the library's only callback thread: it must not block, nor run
     * anybody's code but ours.
     *
     * @param reason the number of a {@link LossReason}, or 0 for a lock that is wanted
     */
    void happened(int reason);
}
