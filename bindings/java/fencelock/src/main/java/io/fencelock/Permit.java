package io.fencelock;

/**
 * What one acquisition of a {@link DistributedSemaphore} has taken, of one permit or several; closing
 * it gives them back together.
 *
 * <p>A hold like that of a lock: any thread may close it, it tells of its loss, and it must be kept
 * where it can be reached, since permits that are collected as garbage are given back, with a warning in
 * the log. It has no owner: {@link #isReentry} is false, and {@link #ticket} is refused. Nor does it read or
 * write: {@link #downgrade} and {@link #tryUpgrade} are refused.
 */
public interface Permit extends Hold {
    /**
     * How many permits it has.
     *
     * @return 1 or more
     */
    int permits();

    /**
     * A number that names the grant: no other permit of the semaphore has it. It is
     * <em>no fence</em>: several permits are valid at once, and a resource that refused smaller
     * numbers would refuse them. To fence, take one of several locks instead.
     *
     * @return the token
     */
    @Override
    long token();

    /**
     * Gives the permits back, as {@link #release} does; nothing when that was done before.
     *
     * @throws LockLostException when the hold had ended before: its permits had come back then, and
     *     others may have had them
     * @throws StoreUnavailableException when the store did not answer; the release goes on in the
     *     background
     */
    @Override
    void close();
}
