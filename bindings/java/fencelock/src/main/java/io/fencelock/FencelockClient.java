package io.fencelock;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
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
 * <p>When the virtual machine shuts down while a client is open, that waits for what it holds to be
 * released, and closes itself when that takes too long; see {@link ClientBuilder#shutdownGrace}.
 */
public interface FencelockClient extends AutoCloseable {
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
    static FencelockClient connect(String url) {
        return builder(url).connect();
    }

    /**
     * Options for a client of the store at {@code url}. Nothing is checked before {@link
     * ClientBuilder#connect}.
     *
     * @param url as in {@link #connect}
     * @return the options
     */
    static ClientBuilder builder(String url) {
        return new ClientBuilder(url);
    }

    /**
     * The version of the native library.
     *
     * @return as in {@code 0.1.0}
     */
    static String version() {
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
    DistributedLock lock(String name);

    /**
     * The read-write lock {@code name}, whose side that writes is {@link #lock} of that name. Asks the
     * store nothing, and may be called again and again.
     *
     * @param name as of {@link #lock}
     * @return the lock
     * @throws InvalidArgumentException for another name
     * @throws UnsupportedByStoreException on a store that has none, see {@link Capabilities#shared}
     */
    DistributedReadWriteLock readWriteLock(String name);

    /**
     * The semaphore {@code name}. Asks the store nothing, and may be called again and again.
     *
     * @param name as of {@link #lock}
     * @param permits how many there are: 1 to 1,000,000. Everybody who holds or waits must say the same
     *     number; once nobody does, the next one says how many there are
     * @return the semaphore
     * @throws InvalidArgumentException for another name or number
     * @throws UnsupportedByStoreException on a store that has none, see {@link Capabilities#permits}
     */
    DistributedSemaphore semaphore(String name, int permits);

    /**
     * Goes on with a hold of another process.
     *
     * @param ticket of {@link Hold#ticket}
     * @return a hold of one's own, with the same owner and token, to be closed
     * @throws NotHeldException when the hold has ended
     * @throws InvalidArgumentException for a text that is no ticket
     */
    Hold attach(String ticket);

    /**
     * As {@link #attach}, without waiting.
     *
     * @param ticket of {@link Hold#ticket}
     * @return a future that fails as {@link #attach} does
     */
    CompletableFuture<Hold> attachAsync(String ticket);

    /**
     * Asks the store whether it is there.
     *
     * @return the store's time
     * @throws StoreUnavailableException when it did not answer
     */
    Instant ping();

    /**
     * As {@link #ping}, without waiting.
     *
     * @return a future of the store's time
     */
    CompletableFuture<Instant> pingAsync();

    /**
     * What the store knows of a lock. Good for display, never for a decision.
     *
     * @param name the lock
     * @return empty when the store knows nothing of it
     */
    Optional<LockInfo> inspect(String name);

    /**
     * As {@link #inspect}, without waiting.
     *
     * @param name the lock
     * @return a future of what {@link #inspect} gives
     */
    CompletableFuture<Optional<LockInfo>> inspectAsync(String name);

    /**
     * The names of locks that the store knows.
     *
     * @param prefix what they begin with
     * @param limit how many at the most
     * @return the names
     * @throws InvalidArgumentException for a limit below 1
     */
    List<String> list(String prefix, int limit);

    /**
     * As {@link #list}, without waiting.
     *
     * @param prefix what they begin with
     * @param limit how many at the most
     * @return a future of the names
     */
    CompletableFuture<List<String>> listAsync(String prefix, int limit);

    /**
     * Ends the holds of a lock that were seen under a token, whoever has them; they are told that they
     * are lost. Who got the lock after it keeps it, so a break may be repeated. For an operator who
     * knows that the holder is gone.
     *
     * @param name the lock
     * @param token that of {@link #inspect}, or of a hold
     * @return what became of it
     */
    Broken breakLock(String name, long token);

    /**
     * As {@link #breakLock}, without waiting.
     *
     * @param name the lock
     * @param token that of {@link #inspect}, or of a hold
     * @return a future of what became of it
     */
    CompletableFuture<Broken> breakLockAsync(String name, long token);

    /**
     * Ends one hold of a lock or a semaphore, as {@link #breakLock} does with all: one reader of several, or
     * one who has permits. The others stay.
     *
     * @param name the lock
     * @param token that of the hold in {@link #inspect}
     * @param hold the hold's id there
     * @return what became of it
     * @throws InvalidArgumentException when it is no hold's id
     */
    Broken breakHold(String name, long token, String hold);

    /**
     * As {@link #breakHold}, without waiting.
     *
     * @param name the lock
     * @param token that of the hold in {@link #inspect}
     * @param hold the hold's id there
     * @return a future of what became of it
     */
    CompletableFuture<Broken> breakHoldAsync(String name, long token, String hold);

    /**
     * The id under which the store knows this client.
     *
     * @return the id
     */
    String id();

    /**
     * What the client has counted, in the text format of Prometheus.
     *
     * @return the text
     */
    String metrics();

    /**
     * What the store can do.
     *
     * @return the capabilities
     */
    Capabilities capabilities();

    /**
     * Whether the client was closed.
     *
     * @return true once {@link #close()} or {@link #close(Duration)} has begun to close it
     */
    boolean isClosed();

    /**
     * Closes the client at once: who waits gets a {@link ClientClosedException}, what is held is
     * lost, told so, and released at the store. Safe at any time, from any thread; a second time
     * does nothing. It does not fail when something was held: the holders are told.
     */
    @Override
    default void close() {
        close(Duration.ZERO);
    }

    /**
     * Closes the client when its holds are released: refuses new ones, waits for at most {@code
     * drain}, and closes it then.
     *
     * @param drain how long to wait for the holds; zero and below: not at all, as {@link #close()}; {@code
     *     Duration.ofSeconds(Long.MAX_VALUE)}: for as long as it takes
     * @throws LockTimeoutException when some were not released in time; the client is closed all the
     *     same
     */
    void close(Duration drain);

    /**
     * As {@link #close(Duration)}, without waiting.
     *
     * @param drain how long to wait for the holds
     * @return a future that fails as {@link #close(Duration)} does
     */
    CompletableFuture<@Nullable Void> closeAsync(Duration drain);
}
