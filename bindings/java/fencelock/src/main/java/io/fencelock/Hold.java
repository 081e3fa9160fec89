package io.fencelock;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
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
 *
 * <p>{@link #token()} is a number, and stays what it is whatever becomes of the hold; {@link #check()}
 * is the same number for as long as the hold can be trusted, and throws afterwards.
 *
 * <p>An interface, so that a test may have a hold of its own; those of a {@link DistributedLock} are
 * made by it alone.
 */
public interface Hold extends AutoCloseable {
    /**
     * The name of the lock.
     *
     * @return the name
     */
    String name();

    /**
     * The fencing token: greater than that of every earlier hold of this lock, and the same for a
     * re-entry. It stays what it is when the hold was lost, and is then refused by a resource that
     * has seen a later one. {@link #downgrade} and {@link #tryUpgrade} give another one. For readers see
     * {@link DistributedReadWriteLock}.
     *
     * @return the token
     */
    long token();

    /**
     * Whether the hold can be trusted at this moment. Looks at this machine's clock, and asks the
     * store nothing.
     *
     * @return false when it has ended, or was released
     */
    boolean isValid();

    /**
     * The token, if the hold can be trusted at this moment. It may end between this call and a
     * write: send the token with the write.
     *
     * @return the token
     * @throws LockLostException when the hold has ended
     * @throws NotHeldException when it was released
     */
    long check();

    /**
     * How long the hold can be trusted from now on if it is not renewed.
     *
     * @return zero when it has ended, or was released
     */
    Duration remaining();

    /**
     * Whether the owner had the lock already, in this client, when this hold was granted.
     *
     * @return true for a re-entry
     * @throws NotHeldException when the hold was released
     */
    boolean isReentry();

    /**
     * Whether the previous holder was lost instead of releasing: then what the lock protects may be
     * half done. Stays set until a hold that was told it has been released.
     *
     * @return yes, no, or unknown
     * @throws NotHeldException when the hold was released
     */
    Abandoned previousAbandoned();

    /**
     * Whether another client waits for the lock, as far as is known.
     *
     * @return false also when the hold was released
     */
    boolean isWanted();

    /**
     * Tells of the loss of the hold. What hangs on the future runs on the client's executor.
     *
     * @return a future that completes when the hold ends before its release, and never when it is
     *     released first
     */
    CompletableFuture<LossReason> lost();

    /**
     * Tells that another client waits for the lock. A holder that can pause its work may release
     * then, and acquire again. What hangs on the future runs on the client's executor.
     *
     * @return a future that completes when somebody else waits, and never when the hold ends first
     */
    CompletableFuture<@Nullable Void> wanted();

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
    void extend(Duration lease);

    /**
     * As {@link #extend}, without waiting.
     *
     * @param lease 100 ms to 7 days
     * @return a future that fails as {@link #extend} does
     */
    CompletableFuture<@Nullable Void> extendAsync(Duration lease);

    /**
     * How the hold shares the lock now.
     *
     * @return what {@link #downgrade} and {@link #tryUpgrade} change
     * @throws NotHeldException when the hold was released
     */
    LockMode mode();

    /**
     * Reads from now on instead of writing, without letting go of the lock: readers that wait come in,
     * and no writer comes between. The token becomes a reader's, above the writer's. Nothing when the hold
     * reads already. Waits for the store; an interrupt does not end the wait.
     *
     * <p>Who has locked the side that writes comes to the same by locking the side that reads, and then
     * unlocking the first.
     *
     * @throws LockContendedException when the owner writes by another hold, too
     * @throws InvalidArgumentException for permits
     * @throws UnsupportedByStoreException on ZooKeeper, for a hold of a plain lock
     * @throws LockLostException when the hold has ended
     * @throws NotHeldException when it was released
     * @throws StoreUnavailableException when the store did not answer; the hold reads all the same, and
     *     the store is told in the background
     */
    void downgrade();

    /**
     * As {@link #downgrade}, without waiting.
     *
     * @return a future that fails as {@link #downgrade} does
     */
    CompletableFuture<@Nullable Void> downgradeAsync();

    /**
     * Writes from now on instead of reading, if nobody else has the lock; past whoever waits for it,
     * since the hold has it already. The token becomes a writer's. It does not wait for other readers: two
     * that waited for each other would do so for ever. Waits for the store; an interrupt does not end the
     * wait.
     *
     * @return true when it writes, also when it did already; false when others read, or the owner has
     *     the lock by another hold, too: then it reads on
     * @throws InvalidArgumentException for permits
     * @throws UnsupportedByStoreException on ZooKeeper
     * @throws LockLostException when the hold has ended
     * @throws NotHeldException when it was released
     * @throws StoreUnavailableException when the store did not answer; the hold reads on
     */
    boolean tryUpgrade();

    /**
     * As {@link #tryUpgrade}, without waiting.
     *
     * @return a future of what {@link #tryUpgrade} gives
     */
    CompletableFuture<Boolean> tryUpgradeAsync();

    /**
     * A short text that lets another process go on with this hold, see {@link
     * FencelockClient#attach}. It is no secret, but whoever has it can join the hold.
     *
     * @return the ticket
     * @throws InvalidArgumentException unless the lock was acquired by an {@link Owner#of explicit
     *     owner}
     * @throws NotHeldException when the hold was released
     */
    String ticket();

    /**
     * Releases the lock, and waits until the store, or the next holder in this client, has it; for
     * the client's request timeout at most. An interrupt does not end the wait.
     *
     * @throws LockLostException when the hold had ended before
     * @throws NotHeldException when it was released before
     * @throws StoreUnavailableException when the store did not answer; the release goes on in the
     *     background
     */
    void release();

    /**
     * As {@link #release}, without waiting.
     *
     * @return a future that fails as {@link #release} does
     */
    CompletableFuture<@Nullable Void> releaseAsync();

    /**
     * Releases the lock as {@link #release} does; nothing when that was done before.
     *
     * @throws LockLostException when the hold had ended before: what was done under it may have met
     *     another holder
     * @throws StoreUnavailableException when the store did not answer; the release goes on in the
     *     background
     */
    @Override
    void close();
}
