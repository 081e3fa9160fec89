package io.fencelock;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The options of a client. The lease, the claim, the two timeouts and the label can be a part of the
 * URL as well, and what is set here wins. Made by {@link FencelockClient#builder}; for one thread.
 */
public final class ClientBuilder {
    private static final int LEASE = 0;
    private static final int CLAIM = 1;
    private static final int REQUEST_TIMEOUT = 2;
    private static final int CONNECT_TIMEOUT = 3;
    private static final int LOCAL_RUN_TIME = 4;
    private static final int LOCAL_RUN_GRANTS = 5;
    private static final int MAX_WAITERS = 6;

    private final String url;

    /** 0 everywhere: the default, or what the URL says. */
    private final long[] numbers = new long[7];

    private @Nullable String label;
    private @Nullable String keyPrefix;
    private @Nullable Executor executor;
    private boolean hooked = true;
    private Duration shutdownGrace = Duration.ofSeconds(10);
    private Duration shutdownDrain = Duration.ofSeconds(5);

    ClientBuilder(String url) {
        this.url = Objects.requireNonNull(url, "url");
    }

    /**
     * The lease of holds without an explicit one; renewed at a third of it.
     *
     * @param lease 100 ms to 7 days; 30 s by default
     * @return this
     */
    public ClientBuilder lease(Duration lease) {
        numbers[LEASE] = Spans.positive("the lease", lease);
        return this;
    }

    /**
     * The lease of a hold given by hand-off, until its holder is heard from.
     *
     * @param claim above zero; 3 s by default
     * @return this
     */
    public ClientBuilder claim(Duration claim) {
        numbers[CLAIM] = Spans.positive("the claim", claim);
        return this;
    }

    /**
     * How long a request waits for the store's answer.
     *
     * @param timeout above zero
     * @return this
     */
    public ClientBuilder requestTimeout(Duration timeout) {
        numbers[REQUEST_TIMEOUT] = Spans.positive("the request timeout", timeout);
        return this;
    }

    /**
     * How long {@link #connect} waits for the store.
     *
     * @param timeout above zero
     * @return this
     */
    public ClientBuilder connectTimeout(Duration timeout) {
        numbers[CONNECT_TIMEOUT] = Spans.positive("the connect timeout", timeout);
        return this;
    }

    /**
     * For how long this client may hand the lock over between its own threads while another client
     * waits.
     *
     * @param time above zero; 10 ms by default
     * @return this
     */
    public ClientBuilder localRunTime(Duration time) {
        numbers[LOCAL_RUN_TIME] = Spans.positive("the time of a local run", time);
        return this;
    }

    /**
     * How often this client may hand the lock over between its own threads while another client
     * waits.
     *
     * @param grants 64 by default; 0 for never
     * @return this
     */
    public ClientBuilder localRunGrants(int grants) {
        if (grants < 0) {
            throw new InvalidArgumentException(
                    "the grants of a local run must not be below zero, and are " + grants);
        }
        numbers[LOCAL_RUN_GRANTS] = grants == 0 ? -1 : grants;
        return this;
    }

    /**
     * How many may wait in this client, for all locks together; one more fails with {@link
     * StoreUnavailableException}.
     *
     * @param waiters above zero
     * @return this
     */
    public ClientBuilder maxWaiters(int waiters) {
        if (waiters <= 0) {
            throw new InvalidArgumentException(
                    "the number of waiters must be above zero, and is " + waiters);
        }
        numbers[MAX_WAITERS] = waiters;
        return this;
    }

    /**
     * What people see of this client, in {@link FencelockClient#inspect} and the command line.
     *
     * @param label up to 128 bytes of UTF-8 without control characters
     * @return this
     */
    public ClientBuilder label(String label) {
        this.label = Objects.requireNonNull(label, "label");
        return this;
    }

    /**
     * The beginning of the store's keys.
     *
     * @param prefix the prefix
     * @return this
     */
    public ClientBuilder keyPrefix(String prefix) {
        keyPrefix = Objects.requireNonNull(prefix, "prefix");
        return this;
    }

    /**
     * Where that runs which hangs on the client's futures.
     *
     * @param executor the common pool, or a thread each where that is too small, by default
     * @return this
     */
    public ClientBuilder executor(Executor executor) {
        this.executor = Objects.requireNonNull(executor, "executor");
        return this;
    }

    /**
     * For how long the virtual machine's shutdown leaves a client alone that holds something or waits
     * for it: it serves as ever meanwhile, so that work under another shutdown hook, such as a server's
     * that finishes its requests, ends as it should. A client that holds nothing costs no time, and is
     * not closed. Then comes the {@link #shutdownDrain drain}.
     *
     * @param limit 10 s by default; zero and below: none
     * @return this
     */
    public ClientBuilder shutdownGrace(Duration limit) {
        shutdownGrace = Objects.requireNonNull(limit, "limit");
        return this;
    }

    /**
     * How long the virtual machine's shutdown waits, after the {@link #shutdownGrace grace}, for what
     * this client still holds; nobody new is served meanwhile. Then the client is closed: what is still
     * held counts as abandoned, and is free for others at once.
     *
     * @param limit 5 s by default; zero and below: none
     * @return this
     */
    public ClientBuilder shutdownDrain(Duration limit) {
        shutdownDrain = Objects.requireNonNull(limit, "limit");
        return this;
    }

    /**
     * Leaves the client alone at the virtual machine's shutdown. What is held then lasts until its
     * lease ends, unless the program closes the client itself.
     *
     * @return this
     */
    public ClientBuilder noShutdownHook() {
        hooked = false;
        return this;
    }

    /**
     * Connects, and waits until the store has answered.
     *
     * @return the client, to be closed
     * @throws InvalidArgumentException for a URL or an option that cannot be
     * @throws UnsupportedByStoreException for a store that this build does not have
     * @throws StoreMisconfiguredException for a wrong password, a missing permission and the like
     * @throws StoreUnavailableException when the store did not answer in time
     */
    public FencelockClient connect() {
        NativeLibrary.require();
        if (VirtualThreads.current()) {
            Parking parking = new Parking(this);
            Native.connectAsync(url(), numbers, bytes(label), bytes(keyPrefix), parking);
            return client(parking.await().result());
        }
        return client(Native.connect(url(), numbers, bytes(label), bytes(keyPrefix)));
    }

    /**
     * As {@link #connect}, without waiting.
     *
     * @return a future that fails as {@link #connect} does
     */
    public CompletableFuture<FencelockClient> connectAsync() {
        NativeLibrary.require();
        return Deferred.start(
                chosenExecutor(),
                (handle, number) -> client(handle),
                Native::freeClient,
                completion -> {
                    Native.connectAsync(
                            url(), numbers, bytes(label), bytes(keyPrefix), completion);
                    return 0;
                });
    }

    private FencelockClient client(long handle) {
        return new NativeClient(
                handle,
                chosenExecutor(),
                hooked ? new ShutdownHook.Patience(shutdownGrace, shutdownDrain) : null);
    }

    private Executor chosenExecutor() {
        return executor != null ? executor : new CompletableFuture<Void>().defaultExecutor();
    }

    private byte[] url() {
        return Text.encode("the URL", url);
    }

    private static byte @Nullable [] bytes(@Nullable String text) {
        return text == null ? null : Text.encode("an option", text);
    }
}
