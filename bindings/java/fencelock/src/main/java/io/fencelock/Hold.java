package io.fencelock;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * One acquisition of a lock. Closing it releases the lock.
 *
 * <pre>{@code
 * try (Hold hold = lock.acquire(Duration.ofSeconds(5))) {
 *     ledger.write(hold.token(), "one sold");   // the ledger refuses a token below its highest
 * }
 * }</pre>
 *
 * <p>A hold may be used and closed by any thread: it names itself, not its holder. Keep it where it
 * can be reached until the work is done, as try-with-resources does: a hold that is collected as
 * garbage releases its lock, and a warning is logged.
 */
public final class Hold implements AutoCloseable {
    private final FencelockClient client;
    private final String name;
    private final long token;
    private final Possession possession;
    private final Cleaner.Cleanable cleanable;
    private final @Nullable Interrupter interrupter;
    private @Nullable CompletableFuture<LossReason> lost;
    private @Nullable CompletableFuture<@Nullable Void> wanted;

    Hold(FencelockClient client, String name, long handle, @Nullable Interrupter interrupter) {
        this.client = client;
        this.name = name;
        this.interrupter = interrupter;
        token = Native.token(handle);
        possession = new Possession(name, handle);
        cleanable = client.cleaner().register(this, possession);
    }

    /** The native hold, until it is released; and what is left to do when that is forgotten. */
    private static final class Possession extends AtomicLong implements Runnable {
        private static final long serialVersionUID = 1L;

        private final String name;

        Possession(String name, long handle) {
            super(handle);
            this.name = name;
        }

        @Override
        public void run() {
            long handle = getAndSet(0);
            if (handle != 0) {
                System.getLogger("io.fencelock")
                        .log(
                                System.Logger.Level.WARNING,
                                "a hold of the lock \"{0}\" was forgotten: it is released now;"
                                        + " close holds, best by try-with-resources",
                                name);
                Native.freeHold(handle);
            }
        }
    }

    /**
     * The name of the lock.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * The fencing token: greater than that of every earlier hold of this lock, and the same for a
     * re-entry. It stays what it is when the hold was lost, and is then refused by a resource that
     * has seen a later one.
     *
     * @return the token
     */
    public long token() {
        return token;
    }

    /**
     * Whether the hold can be trusted at this moment. Looks at this machine's clock, and asks the
     * store nothing.
     *
     * @return false when it has ended, or was released
     */
    public boolean isValid() {
        try {
            return Native.isValid(possession.get());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The token, if the hold can be trusted at this moment. It may end between this call and a
     * write: send the token with the write.
     *
     * @return the token
     * @throws LockLostException when the hold has ended
     * @throws NotHeldException when it was released
     */
    public long check() {
        return ask(Native::check);
    }

    /**
     * How long the hold can be trusted from now on if it is not renewed.
     *
     * @return zero when it has ended, or was released
     */
    public Duration remaining() {
        try {
            return Duration.ofNanos(Native.remaining(possession.get()));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Whether the owner had the lock already, in this client, when this hold was granted.
     *
     * @return true for a re-entry
     * @throws NotHeldException when the hold was released
     */
    public boolean isReentry() {
        return ask(Native::isReentry);
    }

    /**
     * Whether the previous holder was lost instead of releasing: then what the lock protects may be
     * half done. Stays set until a hold that was told it has been released.
     *
     * @return yes, no, or unknown
     * @throws NotHeldException when the hold was released
     */
    public Abandoned previousAbandoned() {
        return ask(handle -> Abandoned.of(Native.previousAbandoned(handle)));
    }

    /**
     * Whether another client waits for the lock, as far as is known.
     *
     * @return false also when the hold was released
     */
    public boolean isWanted() {
        try {
            return Native.isWanted(possession.get());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Tells of the loss of the hold. What hangs on the future runs on the client's executor.
     *
     * @return a future that completes when the hold ends before its release, and never when it is
     *     released first
     */
    public synchronized CompletableFuture<LossReason> lost() {
        if (lost == null) {
            CompletableFuture<LossReason> told = new CompletableFuture<>();
            // The native side keeps the notice, and so whatever that refers to: not this hold.
            Executor executor = client.executor();
            Notice notice =
                    reason -> Tasks.run(executor, () -> told.complete(LossReason.of(reason)));
            watch(handle -> Native.onLost(handle, notice));
            lost = told;
        }
        return lost.copy();
    }

    /**
     * Tells that another client waits for the lock. A holder that can pause its work may release
     * then, and acquire again. What hangs on the future runs on the client's executor.
     *
     * @return a future that completes when somebody else waits, and never when the hold ends first
     */
    public synchronized CompletableFuture<@Nullable Void> wanted() {
        if (wanted == null) {
            CompletableFuture<@Nullable Void> told = new CompletableFuture<>();
            Executor executor = client.executor();
            Notice notice = reason -> Tasks.run(executor, () -> told.complete(null));
            watch(handle -> Native.onWanted(handle, notice));
            wanted = told;
        }
        return wanted.copy();
    }

    /**
     * Sets the lease to {@code lease} from now on; never shortens what is left of it. A hold
     * without an explicit lease goes on being renewed. Waits for the store, for the client's
     * request timeout at most; an interrupt does not end the wait.
     *
     * @param lease 100 ms to 7 days
     * @throws LockLostException when the hold has ended
     * @throws NotHeldException when it was released
     * @throws InvalidArgumentException for a lease outside its range
     * @throws StoreUnavailableException when the store did not answer; the lease may be longer then
     */
    public void extend(Duration lease) {
        long span = Spans.positive("the lease", lease);
        ask(
                handle -> {
                    if (VirtualThreads.current()) {
                        Parking parking = new Parking();
                        Native.extendAsync(handle, span, parking);
                        return parking.await().number();
                    }
                    Native.extend(handle, span);
                    return 0L;
                });
    }

    /**
     * As {@link #extend}, without waiting.
     *
     * @param lease 100 ms to 7 days
     * @return a future that fails as {@link #extend} does
     */
    public CompletableFuture<@Nullable Void> extendAsync(Duration lease) {
        return Deferred.start(
                client.executor(),
                (result, number) -> null,
                completion ->
                        ask(
                                handle -> {
                                    long span = Spans.positive("the lease", lease);
                                    Native.extendAsync(handle, span, completion);
                                    return 0L;
                                }));
    }

    /**
     * A short text that lets another process go on with this hold, see {@link
     * FencelockClient#attach}. It is no secret, but whoever has it can join the hold.
     *
     * @return the ticket
     * @throws InvalidArgumentException unless the lock was acquired by an {@link Owner#of explicit
     *     owner}
     * @throws NotHeldException when the hold was released
     */
    public String ticket() {
        return ask(handle -> Text.decode(Native.ticket(handle)));
    }

    /**
     * Releases the lock, and waits until the store, or the next holder in this client, has it; for
     * the client's request timeout at most. An interrupt does not end the wait.
     *
     * @throws LockLostException when the hold had ended before
     * @throws NotHeldException when it was released before
     * @throws StoreUnavailableException when the store did not answer; the release goes on in the
     *     background
     */
    public void release() {
        release(takeLive(), interrupter);
    }

    /** Releases a native hold. */
    static void release(long handle, @Nullable Interrupter interrupter) {
        if (interrupter != null) {
            interrupter.end();
        }
        if (VirtualThreads.current()) {
            Parking parking = new Parking();
            Native.releaseAsync(handle, parking);
            parking.await().number();
        } else {
            Native.release(handle);
        }
    }

    /**
     * As {@link #release}, without waiting.
     *
     * @return a future that fails as {@link #release} does
     */
    public CompletableFuture<@Nullable Void> releaseAsync() {
        return Deferred.start(
                client.executor(),
                (result, number) -> null,
                completion -> {
                    long handle = takeLive();
                    if (interrupter != null) {
                        interrupter.end();
                    }
                    Native.releaseAsync(handle, completion);
                });
    }

    /**
     * Releases the lock as {@link #release} does; nothing when that was done before.
     *
     * @throws LockLostException when the hold had ended before: what was done under it may have met
     *     another holder
     * @throws StoreUnavailableException when the store did not answer; the release goes on in the
     *     background
     */
    @Override
    public void close() {
        long handle = take();
        if (handle != 0) {
            release(handle, interrupter);
        }
    }

    /** Releases in the background. */
    void abandon() {
        long handle = take();
        if (handle != 0) {
            Native.freeHold(handle);
        }
    }

    private long take() {
        long handle = possession.getAndSet(0);
        cleanable.clean();
        return handle;
    }

    private long takeLive() {
        long handle = take();
        if (handle == 0) {
            throw released();
        }
        return handle;
    }

    /** Calls the native side for a hold that is not released. */
    private <T> T ask(LongFunction<T> call) {
        try {
            long handle = possession.get();
            if (handle == 0) {
                throw released();
            }
            return call.apply(handle);
        } catch (InvalidArgumentException e) {
            // Released by another thread meanwhile: then the handle is refused.
            throw possession.get() == 0 ? released() : e;
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Begins to watch; there is nothing to watch in a hold that is released. */
    private void watch(LongConsumer begin) {
        try {
            ask(
                    handle -> {
                        begin.accept(handle);
                        return 0L;
                    });
        } catch (NotHeldException e) {
            // As the future says: it never completes.
        }
    }

    private NotHeldException released() {
        return new NotHeldException(
                "this hold of the lock \"" + name + "\" was released already: acquire it again");
    }

    @Override
    public String toString() {
        return "Hold[" + name + ", token " + token + (isValid() ? "]" : ", ended]");
    }
}
