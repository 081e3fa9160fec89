package io.fencelock;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A lock that all clients of a store share.
 *
 * <p>As a {@link Lock} it belongs to the thread, and the thread may enter it again:
 *
 * <pre>{@code
 * DistributedLock lock = client.lock("stock/coupon-7");
 * lock.lock();
 * try {
 *     ledger.write(lock.token(), "one sold");
 * } finally {
 *     lock.unlock();
 * }
 * }</pre>
 *
 * <p>{@code lock()} stands before the {@code try}: when it fails there is nothing to unlock. With a
 * bound:
 *
 * <pre>{@code
 * if (!lock.tryLock(5, TimeUnit.SECONDS)) {
 *     throw new IllegalStateException("somebody else is at it");
 * }
 * try {
 *     …
 * } finally {
 *     lock.unlock();
 * }
 * }</pre>
 *
 * <p>{@link #acquire()} gives a {@link Hold} instead, which can be handed to another thread, tells
 * of its loss, and is released by try-with-resources.
 *
 * <p>Locks are made by {@link FencelockClient#lock}; all that have the same name and client are one.
 * They have no state of their own: the methods that begin with {@code with} give another object for
 * the same lock, and two are equal when they are of one lock and acquire it alike.
 *
 * <p>A lock has a lease, which is renewed in the background until the lock is released. It can be
 * <em>lost</em> all the same: by a pause of this process, by the store, by an operator. {@link
 * #unlock} and {@link Hold#close} then throw {@link LockLostException}; {@link Hold#lost} and {@link
 * #withInterruptOnLoss} tell it at once.
 *
 * <p>Waits are fair: first come, first served. An outage of the store is waited out by an unbounded
 * wait. A virtual thread that waits parks, and leaves its carrier to others.
 *
 * <p>An interface, so that a framework can put a proxy around a lock and a test its own in its place.
 */
public interface DistributedLock extends Lock {
    /**
     * The name of the lock.
     *
     * @return the name
     */
    String name();

    // ---- options

    /**
     * The lock as it is acquired by an owner that is not the thread: then all threads that show the
     * owner hold it together, and any of them may unlock it.
     *
     * @param owner the owner
     * @return the same lock
     */
    DistributedLock withOwner(Owner owner);

    /**
     * The lock with acquisitions that never re-enter: acquiring it again waits, also in the same
     * thread. Such a lock has {@link #acquire()} and its kin only; the methods of {@link Lock}
     * belong to a thread or an owner, and refuse.
     *
     * @return the same lock
     */
    DistributedLock nonReentrant();

    /**
     * The lock with an explicit lease: holds are not renewed, and end on time.
     *
     * @param lease 100 ms to 7 days; what is outside is refused by the acquire
     * @return the same lock
     */
    DistributedLock withLease(Duration lease);

    /**
     * The lock with a ceiling over the renewal: a hold ends so long after its grant although its
     * holder lives. Guards against a holder that hangs.
     *
     * @param ceiling above zero
     * @return the same lock
     */
    DistributedLock withMaxHold(Duration ceiling);

    /**
     * The lock with holds that interrupt the thread that acquired them when they are lost. No
     * interrupt comes once the release has begun. The asynchronous methods have no such thread, and
     * take no notice.
     *
     * @return the same lock
     */
    DistributedLock withInterruptOnLoss();

    // ---- java.util.concurrent.locks.Lock

    /**
     * Acquires the lock, waiting as long as it takes. An interrupt does not end the wait, and is
     * kept in the thread's interrupt status.
     *
     * @throws StoreMisconfiguredException when the store refuses for a lasting reason
     * @throws StoreUnavailableException when too many wait in this client already
     * @throws ClientClosedException when the client is closed, also while waiting
     */
    @Override
    void lock();

    /**
     * As {@link #lock}, but an interrupt ends the wait.
     *
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    @Override
    void lockInterruptibly() throws InterruptedException;

    /**
     * Acquires the lock if it is free and nobody waits for it. An interrupt does not end the call.
     *
     * @return false when another holds it or waits for it
     * @throws StoreUnavailableException when the store did not answer
     */
    @Override
    boolean tryLock();

    /**
     * Acquires the lock, waiting for at most {@code time}.
     *
     * @return false when others held it all the while
     * @throws StoreUnavailableException when the store could not be asked
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    @Override
    boolean tryLock(long time, TimeUnit unit) throws InterruptedException;

    /**
     * Undoes one {@code lock()}; the last one releases the lock, and waits until the store, or the
     * next holder in this client, has it.
     *
     * @throws NotHeldException when this thread has not locked it: an {@link
     *     IllegalMonitorStateException}
     * @throws LockLostException from the last one, when the lock was lost: what was done under it may
     *     have met another holder
     * @throws StoreUnavailableException when the store did not answer; the release goes on in the
     *     background
     */
    @Override
    void unlock();

    /**
     * Not supported: a condition's signal would have to reach waiters in other processes, and a
     * signal that is lost with a process or a connection would leave them waiting for ever. Wait
     * for the state itself instead, in the store that has it.
     *
     * @throws UnsupportedOperationException always
     */
    @Override
    default Condition newCondition() {
        throw new UnsupportedOperationException(
                "a distributed lock has no conditions: a signal can be lost with a process or a"
                        + " connection; wait for the state itself, in the store that has it");
    }

    // ---- who holds it

    /**
     * Whether the calling thread, or the explicit owner in this client, holds the lock. Asks the
     * store nothing.
     *
     * @return false also when the lock was lost
     */
    default boolean isHeldByCurrentThread() {
        return getHoldCount() > 0;
    }

    /**
     * How many valid holds the calling thread, or the explicit owner in this client, has on the
     * lock: those of {@link #lock} and those of {@link #acquire()}. Of a lock, and of the side of a
     * {@link DistributedReadWriteLock} that writes, those that write; of the side that reads, those that
     * read. Asks the store nothing.
     *
     * @return 0 when it has none, or has lost them
     */
    int getHoldCount();

    /**
     * The fencing token of what the calling thread, or the explicit owner, has locked by {@link
     * #lock} and its kin. As {@link Hold#token} it stays what it is when the lock was lost, until the
     * last {@link #unlock}, and is then refused by a resource that has seen a later one.
     *
     * @return the token, see {@link Hold#token}
     * @throws NotHeldException when it has not locked it
     */
    long token();

    /**
     * The token, as {@link #token()}, if the lock can be trusted at this moment. It may be lost
     * between this call and a write: send the token with the write.
     *
     * @return the token
     * @throws NotHeldException when the calling thread, or the explicit owner, has not locked it
     * @throws LockLostException when the lock was lost
     */
    long check();

    /**
     * Whether anybody holds the lock, by the store's word at the time of asking. Good for display,
     * never for a decision.
     *
     * @return true when there is a holder
     */
    boolean isLocked();

    /**
     * As {@link #isLocked}, without waiting.
     *
     * @return a future of the answer
     */
    CompletableFuture<Boolean> isLockedAsync();

    // ---- holds

    /**
     * Acquires the lock, waiting as long as it takes.
     *
     * @return the hold, to be closed
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    Hold acquire() throws InterruptedException;

    /**
     * Acquires the lock, waiting for at most {@code limit}.
     *
     * @param limit how long
     * @return the hold, to be closed
     * @throws LockTimeoutException when others held it all the while; {@link
     *     LockContendedException} when the limit is zero
     * @throws StoreUnavailableException when the store could not be asked
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    Hold acquire(Duration limit) throws InterruptedException;

    /**
     * Acquires the lock if it is free and nobody waits for it.
     *
     * <pre>{@code
     * try (Hold hold = lock.tryAcquire()) {
     *     if (hold == null) return;   // somebody else is at it
     *     …
     * }
     * }</pre>
     *
     * @return the hold, to be closed; null when another holds the lock or waits for it
     * @throws StoreUnavailableException when the store did not answer
     */
    @Nullable Hold tryAcquire();

    /**
     * As {@link #tryAcquire()}, waiting for at most {@code limit}: what {@link #acquire(Duration)}
     * throws a {@link LockTimeoutException} for is null here.
     *
     * @param limit how long; zero and below ask once
     * @return the hold, to be closed; null when others held the lock all the while
     * @throws StoreUnavailableException when the store could not be asked
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    @Nullable Hold tryAcquire(Duration limit) throws InterruptedException;

    /**
     * As {@link #acquire()}, without waiting. The hold belongs to nobody but who has it: without an
     * explicit {@link #withOwner owner} it does not re-enter, because an asynchronous task has no
     * thread of its own.
     *
     * <p>Cancelling <em>this</em> future, or completing it in any other way, leaves the queue; what
     * was granted meanwhile is given back. A future that is made from it ({@code thenApply}, {@code
     * thenCompose}) does not pass its cancellation on: who cancels that one leaves a hold to the
     * garbage collector. {@link #withLockAsync(Function)} has no such gap.
     *
     * @return a future of the hold, which whoever takes it has to release
     */
    CompletableFuture<Hold> acquireAsync();

    /**
     * As {@link #acquireAsync()}, waiting for at most {@code limit}.
     *
     * @param limit how long; zero and below ask once
     * @return a future that fails with {@link LockTimeoutException} when others held the lock all
     *     the while; with {@link LockContendedException} when the limit is zero
     */
    CompletableFuture<Hold> acquireAsync(Duration limit);

    /**
     * As {@link #tryAcquire()}, without waiting for the store's answer.
     *
     * @return a future of the hold; of null when another holds the lock or waits for it
     */
    CompletableFuture<@Nullable Hold> tryAcquireAsync();

    /**
     * As {@link #tryAcquire(Duration)}, without waiting.
     *
     * @param limit how long; zero and below ask once
     * @return a future of the hold; of null when others held the lock all the while
     */
    CompletableFuture<@Nullable Hold> tryAcquireAsync(Duration limit);

    /**
     * Acquires the lock, runs {@code work}, and releases when what that gives has completed:
     *
     * <pre>{@code
     * lock.withLockAsync(hold -> ledger.writeAsync(hold.token(), "one sold"))
     *     .thenRun(this::thank);
     * }</pre>
     *
     * <p>Whatever fails or is cancelled, no hold is left behind. Cancelling the future leaves the
     * queue; work that has begun is not stopped by it, and keeps the lock until it has ended, since
     * nobody else may begin before.
     *
     * @param work begun on the client's executor once the lock is held; must not give null
     * @param <T> what the work gives
     * @return a future of what the work gives. It fails as {@link #acquireAsync()} and the work do,
     *     and with {@link LockLostException} when the lock was lost before the work had ended: what
     *     it did may have met another holder. If the work failed, too, that comes first, with the
     *     loss among its suppressed. A release that the store did not confirm goes on in the
     *     background, and is no failure
     */
    default <T extends @Nullable Object> CompletableFuture<T> withLockAsync(
            Function<? super Hold, ? extends CompletionStage<T>> work) {
        return WithLock.run(acquireAsync(), work);
    }

    /**
     * As {@link #withLockAsync(Function)}, waiting for the lock for at most {@code limit}.
     *
     * @param limit how long; zero and below ask once
     * @param work begun on the client's executor once the lock is held; must not give null
     * @param <T> what the work gives
     * @return a future that fails as {@link #acquireAsync(Duration)} and the work do
     */
    default <T extends @Nullable Object> CompletableFuture<T> withLockAsync(
            Duration limit, Function<? super Hold, ? extends CompletionStage<T>> work) {
        return WithLock.run(acquireAsync(limit), work);
    }
}
