package io.fencelock;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * A connection to a store, shared by all threads of a program; make one, and keep it.
 *
 * <pre>{@code
 * try (FencelockClient client = FencelockClient.connect("redis://localhost")) {
 *     DistributedLock lock = client.lock("stock/coupon-7");
 *     lock.lock();
 *     try {
 *         ledger.write(lock.token(), "one sold");
 *     } finally {
 *         lock.unlock();
 *     }
 * }
 * }</pre>
 *
 * <p>When the virtual machine shuts down, a client that is still open waits a moment for its holds
 * to be released and closes itself; see {@link ClientBuilder#shutdownDrain}.
 */
public final class FencelockClient implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final Executor executor;
    private final Cleaner.Cleanable cleanable;
    private final @Nullable Thread hook;
    private final ConcurrentHashMap<String, LockState.Anchor> locks = new ConcurrentHashMap<>();
    private final ReferenceQueue<LockState> forgotten = new ReferenceQueue<>();

    FencelockClient(long handle, Executor executor, @Nullable Duration shutdownDrain) {
        this.handle = handle;
        this.executor = executor;
        hook = shutdownDrain == null ? null : ShutdownHook.add(this, shutdownDrain);
        cleanable = CLEANER.register(this, new Sweep(handle, hook));
    }

    /** What is left to do when nobody can reach the client any more. */
    private record Sweep(long handle, @Nullable Thread hook) implements Runnable {
        @Override
        public void run() {
            ShutdownHook.remove(hook);
            Native.freeClient(handle);
        }
    }

    /**
     * Connects with the default options, and waits until the store has answered.
     *
     * @param url {@code redis://host}, {@code sqlite:path}, {@code memory:} and so on
     * @return the client, to be closed
     * @throws InvalidArgumentException for a URL that cannot be read
     * @throws UnsupportedByStoreException for a store that this build does not have
     * @throws StoreMisconfiguredException for a wrong password, a missing permission and the like
     * @throws StoreUnavailableException when the store did not answer in time
     */
    public static FencelockClient connect(String url) {
        return builder(url).connect();
    }

    /**
     * Options for a client of the store at {@code url}. Nothing is checked before {@link
     * ClientBuilder#connect}.
     *
     * @param url as in {@link #connect}
     * @return the options
     */
    public static ClientBuilder builder(String url) {
        return new ClientBuilder(url);
    }

    /**
     * The version of the native library.
     *
     * @return as in {@code 0.1.0}
     */
    public static String version() {
        NativeLibrary.require();
        return Native.version();
    }

    /**
     * The lock {@code name}. Asks the store nothing, and may be called again and again.
     *
     * @param name 1 to 512 bytes of UTF-8 without NUL; on ZooKeeper names are paths (see {@link
     *     Capabilities#paths}), without an empty part and without {@code .} and {@code ..}
     * @return the lock
     * @throws InvalidArgumentException for another name
     */
    public DistributedLock lock(String name) {
        Reference<? extends LockState> gone;
        while ((gone = forgotten.poll()) != null) {
            LockState.Anchor anchor = (LockState.Anchor) gone;
            locks.remove(anchor.name, anchor);
        }
        LockState.Anchor anchor = locks.get(name);
        LockState state = anchor == null ? null : anchor.get();
        if (state == null) {
            state = make(name);
        }
        return new DistributedLock(state);
    }

    private LockState make(String name) {
        LockState[] made = new LockState[1];
        locks.compute(
                name,
                (key, old) -> {
                    LockState other = old == null ? null : old.get();
                    made[0] =
                            other == null ? new LockState(this, name, CLEANER, forgotten) : other;
                    return made[0].anchor();
                });
        return made[0];
    }

    /**
     * Goes on with a hold of another process.
     *
     * @param ticket of {@link Hold#ticket}
     * @return a hold of one's own, with the same owner and token, to be closed
     * @throws NotHeldException when the hold has ended
     * @throws InvalidArgumentException for a text that is no ticket
     */
    public Hold attach(String ticket) {
        try {
            byte[] text = Text.encode("the ticket", ticket);
            long hold;
            if (VirtualThreads.current()) {
                Parking parking = new Parking();
                long operation = Native.attachAsync(handle, text, parking);
                try {
                    hold = parking.await().result();
                } finally {
                    Native.freeOperation(operation);
                }
            } else {
                hold = Native.attach(handle, text);
            }
            return attached(hold);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #attach}, without waiting.
     *
     * @param ticket of {@link Hold#ticket}
     * @return a future that fails as {@link #attach} does
     */
    public CompletableFuture<Hold> attachAsync(String ticket) {
        return Deferred.start(
                executor,
                (hold, number) -> attached(hold),
                Native::freeHold,
                completion ->
                        Native.attachAsync(
                                handle, Text.encode("the ticket", ticket), completion));
    }

    private Hold attached(long hold) {
        return new Hold(this, Text.decode(Native.holdName(hold)), hold, null);
    }

    /**
     * Asks the store whether it is there.
     *
     * @return the store's time
     * @throws StoreUnavailableException when it did not answer
     */
    public Instant ping() {
        try {
            if (VirtualThreads.current()) {
                Parking parking = new Parking();
                Native.pingAsync(handle, parking);
                return instant(parking.await().number());
            }
            return instant(Native.ping(handle));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #ping}, without waiting.
     *
     * @return a future of the store's time
     */
    public CompletableFuture<Instant> pingAsync() {
        return Deferred.start(
                executor,
                (result, number) -> instant(number),
                completion -> Native.pingAsync(handle, completion));
    }

    private static Instant instant(long nanos) {
        return Instant.EPOCH.plusNanos(nanos);
    }

    /**
     * What the store knows of a lock. Good for display, never for a decision.
     *
     * @param name the lock
     * @return empty when the store knows nothing of it
     */
    public Optional<LockInfo> inspect(String name) {
        try {
            byte[] text = Text.encode("the name of a lock", name);
            if (VirtualThreads.current()) {
                Parking parking = new Parking();
                Native.inspectAsync(handle, text, parking);
                return info(parking.await().result());
            }
            return info(Native.inspect(handle, text));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #inspect}, without waiting.
     *
     * @param name the lock
     * @return a future of what {@link #inspect} gives
     */
    public CompletableFuture<Optional<LockInfo>> inspectAsync(String name) {
        return Deferred.start(
                executor,
                (result, number) -> info(result),
                Native::freeInspection,
                completion -> {
                    Native.inspectAsync(
                            handle, Text.encode("the name of a lock", name), completion);
                    return 0;
                });
    }

    private static Optional<LockInfo> info(long inspection) {
        return inspection == 0 ? Optional.empty() : Optional.of(LockInfo.take(inspection));
    }

    /**
     * The names of locks that the store knows.
     *
     * @param prefix what they begin with
     * @param limit how many at the most
     * @return the names
     */
    public List<String> list(String prefix, int limit) {
        try {
            byte[] text = Text.encode("the prefix", prefix);
            if (VirtualThreads.current()) {
                Parking parking = new Parking();
                Native.listAsync(handle, text, limit, parking);
                return names(parking.await().result());
            }
            return names(Native.list(handle, text, limit));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #list}, without waiting.
     *
     * @param prefix what they begin with
     * @param limit how many at the most
     * @return a future of the names
     */
    public CompletableFuture<List<String>> listAsync(String prefix, int limit) {
        return Deferred.start(
                executor,
                (result, number) -> names(result),
                Native::freeNames,
                completion -> {
                    Native.listAsync(handle, Text.encode("the prefix", prefix), limit, completion);
                    return 0;
                });
    }

    private static List<String> names(long handle) {
        List<String> names = new ArrayList<>();
        for (byte[] name : Native.takeNames(handle)) {
            names.add(Text.decode(name));
        }
        return List.copyOf(names);
    }

    /**
     * Ends the present holds of a lock, whoever has them; they are told that they are lost. For an
     * operator who knows that the holder is gone.
     *
     * @param name the lock
     * @return how many holds were ended
     */
    public long breakLock(String name) {
        try {
            byte[] text = Text.encode("the name of a lock", name);
            if (VirtualThreads.current()) {
                Parking parking = new Parking();
                Native.breakLockAsync(handle, text, parking);
                return parking.await().number();
            }
            return Native.breakLock(handle, text);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #breakLock}, without waiting.
     *
     * @param name the lock
     * @return a future of how many holds were ended
     */
    public CompletableFuture<Long> breakLockAsync(String name) {
        return Deferred.start(
                executor,
                (result, number) -> number,
                completion ->
                        Native.breakLockAsync(
                                handle, Text.encode("the name of a lock", name), completion));
    }

    /**
     * The id under which the store knows this client.
     *
     * @return the id
     */
    public String id() {
        return Text.decode(Native.clientId(handle));
    }

    /**
     * What the client has counted, in the text format of Prometheus.
     *
     * @return the text
     */
    public String metrics() {
        return Text.decode(Native.metrics(handle));
    }

    /**
     * What the store can do.
     *
     * @return the capabilities
     */
    public Capabilities capabilities() {
        int bits = Native.capabilities(handle);
        return new Capabilities(
                Text.decode(Native.storeName(handle)),
                (bits & 1) != 0,
                (bits & 2) != 0,
                (bits & 4) != 0,
                (bits & 8) != 0,
                (bits & 16) != 0,
                (bits & 32) != 0);
    }

    /**
     * Whether the client was closed.
     *
     * @return true once {@link #close()} or {@link #close(Duration)} has begun to close it
     */
    public boolean isClosed() {
        return Native.isClosed(handle);
    }

    /**
     * Closes the client at once: who waits gets a {@link ClientClosedException}, what is held is
     * lost, told so, and released at the store. Safe at any time, from any thread; a second time
     * does nothing.
     */
    @Override
    public void close() {
        close(Duration.ZERO);
    }

    /**
     * Closes the client when its holds are released: refuses new ones, waits for at most {@code
     * drain}, and closes it then.
     *
     * @param drain how long to wait for the holds
     * @throws LockTimeoutException when some were not released in time; the client is closed all the
     *     same
     */
    public void close(Duration drain) {
        ShutdownHook.remove(hook);
        try {
            if (VirtualThreads.current()) {
                Parking parking = new Parking();
                Native.closeAsync(handle, Spans.patience(drain), parking);
                parking.await().number();
            } else {
                Native.close(handle, Spans.patience(drain));
            }
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #close(Duration)}, without waiting.
     *
     * @param drain how long to wait for the holds
     * @return a future that fails as {@link #close(Duration)} does
     */
    public CompletableFuture<@Nullable Void> closeAsync(Duration drain) {
        ShutdownHook.remove(hook);
        return Deferred.start(
                executor,
                (result, number) -> null,
                completion -> Native.closeAsync(handle, Spans.patience(drain), completion));
    }

    long handle() {
        return handle;
    }

    Executor executor() {
        return executor;
    }

    Cleaner cleaner() {
        return CLEANER;
    }

    /** Nobody wants this client. */
    void abandon() {
        cleanable.clean();
    }

    @Override
    public String toString() {
        return "FencelockClient[" + capabilities().store() + (isClosed() ? ", closed]" : "]");
    }
}
