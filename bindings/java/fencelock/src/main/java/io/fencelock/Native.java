package io.fencelock;

import org.jspecify.annotations.Nullable;

/**
 * The native library. A handle is a number in a checked table, never an address: one that was freed
 * gives an error. Who makes the first call sees to {@link NativeLibrary#require}: a static
 * initialiser would say why it failed only once. Durations are nanoseconds. What fails throws what {@link #failure} makes.
 */
final class Native {
    /** For a wait without bound. */
    static final long FOREVER = -1;

    /** No wait. */
    static final long TRY = 0;

    private Native() {}

    /** Called by the native side. */
    private static RuntimeException failure(int status, byte[] message) {
        return FencelockException.of(status, Text.decode(message));
    }

    static native String version();

    /** Handles that are not freed yet, of all clients. */
    static native long liveHandles();

    /** {@code options}: lease, claim, request and connect timeout, local run's time and grants, waiters. */
    static native long connect(
            byte[] url, long[] options, byte @Nullable [] label, byte @Nullable [] keyPrefix);

    static native void connectAsync(
            byte[] url,
            long[] options,
            byte @Nullable [] label,
            byte @Nullable [] keyPrefix,
            Completion completion);

    static native void close(long client, long drain);

    static native void closeAsync(long client, long drain, Completion completion);

    static native boolean isClosed(long client);

    /** Whether nothing is held, waited for or being released. */
    static native boolean isIdle(long client);

    static native void freeClient(long client);

    static native byte[] clientId(long client);

    static native byte[] metrics(long client);

    static native byte[] storeName(long client);

    /** Bits, from the lowest: processes, durable, owners, leases, abandoned, paths, shared, permits. */
    static native int capabilities(long client);

    static native long ping(long client);

    static native void pingAsync(long client, Completion completion);

    /** How many holds were ended; below zero: none, for that is the later token of who has it now. */
    static native long breakLock(long client, byte[] name, long token);

    static native void breakLockAsync(
            long client, byte[] name, long token, Completion completion);

    /** As {@link #breakLock}, of one hold. */
    static native long breakHold(long client, byte[] name, long token, byte[] hold);

    static native void breakHoldAsync(
            long client, byte[] name, long token, byte[] hold, Completion completion);

    /** Gives a handle for {@link #takeNames}. */
    static native long list(long client, byte[] prefix, long limit);

    static native void listAsync(long client, byte[] prefix, long limit, Completion completion);

    /** Frees the handle. */
    static native byte[][] takeNames(long names);

    static native void freeNames(long names);

    /** Gives a handle for the two calls below, to be freed; or 0. */
    static native long inspect(long client, byte[] name);

    static native void inspectAsync(long client, byte[] name, Completion completion);

    /**
     * Token, last token, abandoned, number of holds, number of waiters, how many wait in all; for
     * each hold expiresIn, lease, claim, local waiters or -1, token, mode, permits, of how many; for
     * each waiter heardAgo, silent, local waiters or -1, mode, permits.
     */
    static native long[] inspectionNumbers(long inspection);

    /** Name, owner; for each hold id, client, label, owner; for each waiter id, client, label, owner. */
    static native byte @Nullable [][] inspectionTexts(long inspection);

    static native void freeInspection(long inspection);

    static native long lock(long client, byte[] name);

    /** The side of a read-write lock that reads. */
    static native long readLock(long client, byte[] name);

    static native void freeLock(long lock);

    static native boolean isLocked(long lock);

    static native void isLockedAsync(long lock, Completion completion);

    /**
     * The calling thread waits for at most {@code block}, which is 0 for not at all. Gives the
     * operation, to be freed; or 0 when it has ended by then.
     */
    static native long acquire(
            long lock,
            long timeout,
            long lease,
            long maxHold,
            int ownerKind,
            long ownerNumber,
            byte @Nullable [] owner,
            long block,
            Completion completion);

    static native long semaphore(long client, byte[] name, int permits);

    /** A handle of its own. */
    static native long adopting(long semaphore);

    static native void freeSemaphore(long semaphore);

    static native boolean resize(long semaphore, int permits);

    static native void resizeAsync(long semaphore, int permits, Completion completion);

    static native int availablePermits(long semaphore);

    static native void availablePermitsAsync(long semaphore, Completion completion);

    /** As {@link #acquire}. */
    static native long acquirePermits(
            long semaphore,
            int count,
            long timeout,
            long lease,
            long maxHold,
            long block,
            Completion completion);

    static native long holdCount(
            long lock, int ownerKind, long ownerNumber, byte @Nullable [] owner);

    static native long attach(long client, byte[] ticket);

    static native long attachAsync(long client, byte[] ticket, Completion completion);

    static native byte[] holdName(long hold);

    /** False also for a handle that was freed. */
    static native boolean isValid(long hold);

    static native long token(long hold);

    static native long check(long hold);

    /** 0 also for a handle that was freed. */
    static native long remaining(long hold);

    static native boolean isReentry(long hold);

    /** False also for a handle that was freed. */
    static native boolean isWanted(long hold);

    static native int previousAbandoned(long hold);

    static native byte[] ticket(long hold);

    static native void extend(long hold, long lease);

    static native void extendAsync(long hold, long lease, Completion completion);

    /** The number of a {@link LockMode}. */
    static native int mode(long hold);

    static native void downgrade(long hold);

    static native void downgradeAsync(long hold, Completion completion);

    /** False when others have the lock, too. */
    static native boolean tryUpgrade(long hold);

    static native void tryUpgradeAsync(long hold, Completion completion);

    /** Frees the handle, whatever comes of it. */
    static native void release(long hold);

    /** Frees the handle, whatever comes of it. */
    static native void releaseAsync(long hold, Completion completion);

    /** Releases in the background. */
    static native void freeHold(long hold);

    static native void onLost(long hold, Notice notice);

    static native void onWanted(long hold, Notice notice);

    static native void cancelOperation(long operation);

    static native void freeOperation(long operation);
}
