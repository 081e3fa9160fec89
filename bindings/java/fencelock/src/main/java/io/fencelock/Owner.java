package io.fencelock;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Who holds a lock, when that is not simply the thread. Whoever shows the same owner re-enters;
 * parallel branches of one owner do not exclude each other.
 *
 * <pre>{@code
 * DistributedLock lock = client.lock("order/9").withOwner(Owner.of(traceId));
 * try (Hold hold = lock.acquire(Duration.ofSeconds(5))) { … }
 * }</pre>
 *
 * @see DistributedLock#withOwner(Owner)
 */
public final class Owner {
    static final int LOCAL = 1;
    static final int FRESH = 2;
    static final int EXPLICIT = 3;

    /** Above the numbers of threads; the native side wants them below 2^62. */
    private static final AtomicLong NEXT = new AtomicLong(1L << 61);

    private final @Nullable String id;
    final byte @Nullable [] bytes;
    final long number;

    private Owner(@Nullable String id, long number) {
        this.id = id;
        this.bytes = id == null ? null : Text.encode("the owner", id);
        this.number = number;
    }

    /**
     * An owner that travels: another process, or another language, that shows the same text
     * re-enters. A trace id or a request id is a good choice.
     *
     * @param id 1 to 256 bytes of UTF-8 without control characters
     * @return the owner
     */
    public static Owner of(String id) {
        return new Owner(Objects.requireNonNull(id, "id"), 0);
    }

    /**
     * A new owner of this process: for a coroutine, or for a task and the child threads that it
     * hands this object to. Unlike {@link #of}, the lock may pass from it to a local waiter without
     * a round trip to the store.
     *
     * @return an owner that equals no other
     */
    public static Owner create() {
        return new Owner(null, next());
    }

    /** A number that no other owner in this class loader has. */
    static long next() {
        return NEXT.getAndIncrement();
    }

    int kind() {
        return bytes == null ? LOCAL : EXPLICIT;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Owner owner
                && number == owner.number
                && Objects.equals(id, owner.id);
    }

    @Override
    public int hashCode() {
        return Objects.hash(id, number);
    }

    @Override
    public String toString() {
        return id == null ? "owner " + (number - (1L << 61)) + " of this process" : id;
    }
}
