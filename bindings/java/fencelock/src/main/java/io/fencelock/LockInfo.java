package io.fencelock;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * A lock as the store sees it, for people.
 *
 * @param name the lock
 * @param owner the explicit owner of the present holds, if they have one; null while readers have
 *     the lock
 * @param token the token of the present holds, the highest of them where each has its own; or 0
 * @param lastToken the highest token reserved so far
 * @param abandoned what the next holder will be told of its predecessor
 * @param holds the present holds: none when the lock is free, several when an explicit owner
 *     re-entered, and of readers and of a semaphore
 * @param waiters who waits, first come first: an entry for each client, and 256 at the most
 * @param waiting how many wait in all: the whole queue, and who waits within the clients of the
 *     holds and waiters that are shown, as far as that is known
 */
public record LockInfo(
        String name,
        @Nullable String owner,
        long token,
        long lastToken,
        Abandoned abandoned,
        List<HoldInfo> holds,
        List<WaiterInfo> waiters,
        long waiting) {

    /**
     * A hold.
     *
     * @param id its id
     * @param client the id of its client
     * @param label the label of its client
     * @param expiresIn what is left of the lease
     * @param lease the lease that it counts from
     * @param claim given by hand-off, and its holder not heard from yet
     * @param localWaiters how many wait within its client, which hands the lock on among them, as
     *     that said with its latest acquire or renewal: up to a third of a lease old, and 65,535 at
     *     the most; exact for the client that asks; empty where it is unknown (ZooKeeper)
     * @param token its token
     * @param owner its explicit owner, if it has one
     * @param mode how it shares the lock
     * @param permits how many permits it has; 0 of a lock
     * @param of how many permits there are, as it was said when it was acquired; 0 of a lock
     */
    public record HoldInfo(
            String id,
            String client,
            String label,
            Duration expiresIn,
            Duration lease,
            boolean claim,
            OptionalInt localWaiters,
            long token,
            @Nullable String owner,
            LockMode mode,
            int permits,
            int of) {}

    /**
     * A waiter.
     *
     * @param id the id of its hold
     * @param client the id of its client
     * @param label the label of its client
     * @param owner its explicit owner, if it has one
     * @param heardAgo since when nothing was heard of it
     * @param silent whether that is so long that it is passed over
     * @param localWaiters how many more wait within its client, as for a hold
     * @param mode how it wants to share the lock
     * @param permits how many permits it wants; 0 of a lock
     */
    public record WaiterInfo(
            String id,
            String client,
            String label,
            @Nullable String owner,
            Duration heardAgo,
            boolean silent,
            OptionalInt localWaiters,
            LockMode mode,
            int permits) {}

    /** Reads a native inspection, and frees it. */
    static LockInfo take(long handle) {
        long[] numbers;
        byte @Nullable [][] texts;
        try {
            numbers = Native.inspectionNumbers(handle);
            texts = Native.inspectionTexts(handle);
        } finally {
            Native.freeInspection(handle);
        }
        int n = 6;
        int t = 2;
        List<HoldInfo> holds = new ArrayList<>();
        for (long i = 0; i < numbers[3]; i++, n += 8, t += 4) {
            holds.add(
                    new HoldInfo(
                            text(texts[t]),
                            text(texts[t + 1]),
                            text(texts[t + 2]),
                            Duration.ofNanos(numbers[n]),
                            Duration.ofNanos(numbers[n + 1]),
                            numbers[n + 2] != 0,
                            known(numbers[n + 3]),
                            numbers[n + 4],
                            optional(texts[t + 3]),
                            LockMode.of(numbers[n + 5]),
                            (int) numbers[n + 6],
                            (int) numbers[n + 7]));
        }
        List<WaiterInfo> waiters = new ArrayList<>();
        for (long i = 0; i < numbers[4]; i++, n += 5, t += 4) {
            waiters.add(
                    new WaiterInfo(
                            text(texts[t]),
                            text(texts[t + 1]),
                            text(texts[t + 2]),
                            optional(texts[t + 3]),
                            Duration.ofNanos(numbers[n]),
                            numbers[n + 1] != 0,
                            known(numbers[n + 2]),
                            LockMode.of(numbers[n + 3]),
                            (int) numbers[n + 4]));
        }
        return new LockInfo(
                text(texts[0]),
                optional(texts[1]),
                numbers[0],
                numbers[1],
                Abandoned.of(numbers[2]),
                List.copyOf(holds),
                List.copyOf(waiters),
                numbers[5]);
    }

    private static OptionalInt known(long count) {
        return count < 0 ? OptionalInt.empty() : OptionalInt.of((int) count);
    }

    private static String text(byte @Nullable [] bytes) {
        return Text.decode(Objects.requireNonNull(bytes, "a text of the store"));
    }

    private static @Nullable String optional(byte @Nullable [] bytes) {
        return bytes == null ? null : Text.decode(bytes);
    }
}
