package io.fencelock;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
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
 * Objects of this class have no state of their own: the methods that begin with {@code with} give
 * another object for the same lock.
 *
 * <p>A lock has a lease, which is renewed in the background until the lock is released. It can be
 * <em>lost</em> all the same: by a pause of this process, by the store, by an operator. {@link
 * #unlock} and {@link Hold#close} then throw {@link LockLostException}; {@link Hold#lost} and {@link
 * #withInterruptOnLoss} tell it at once.
 *
 * <p>Waits are fair: first come, first served. An outage of the store is waited out by an unbounded
 * wait. A virtual thread that waits parks, and leaves its carrier to others.
 */
public final class DistributedLock implements Lock {
    private final LockState state;
    private final @Nullable Owner owner;
    private final boolean reentrant;
    private final long lease;
    private final long maxHold;
    private final boolean interrupts;

    DistributedLock(LockState state) {
        this(state, null, true, 0, 0, false);
    }

    private DistributedLock(
            LockState state,
            @Nullable Owner owner,
            boolean reentrant,
            long lease,
            long maxHold,
            boolean interrupts) {
        this.state = state;
        this.owner = owner;
        this.reentrant = reentrant;
        this.lease = lease;
        this.maxHold = maxHold;
        this.interrupts = interrupts;
    }

    /**
     * The name of the lock.
     *
     * @return the name
     */
    public String name() {
        return state.name;
    }

    // ---- options

    /**
     * The lock as it is acquired by an owner that is not the thread: then all threads that show the
     * owner hold it together, and any of them may unlock it.
     *
     * @param owner the owner
     * @return the same lock
     */
    public DistributedLock withOwner(Owner owner) {
        return new DistributedLock(state, owner, true, lease, maxHold, interrupts);
    }

    /**
     * The lock with acquisitions that never re-enter: acquiring it again waits, also in the same
     * thread. Such a lock has {@link #acquire()} and its kin only; the methods of {@link Lock}
     * belong to a thread or an owner, and refuse.
     *
     * @return the same lock
     */
    public DistributedLock nonReentrant() {
        return new DistributedLock(state, null, false, lease, maxHold, interrupts);
    }

    /**
     * The lock with an explicit lease: holds are not renewed, and end on time.
     *
     * @param lease 100 ms to 7 days; what is outside is refused by the acquire
     * @return the same lock
     */
    public DistributedLock withLease(Duration lease) {
        long span = Spans.positive("the lease", lease);
        return new DistributedLock(state, owner, reentrant, span, maxHold, interrupts);
    }

    /**
     * The lock with a ceiling over the renewal: a hold ends so long after its grant although its
     * holder lives. Guards against a holder that hangs.
     *
     * @param ceiling above zero
     * @return the same lock
     */
    public DistributedLock withMaxHold(Duration ceiling) {
        long span = Spans.positive("maxHold", ceiling);
        return new DistributedLock(state, owner, reentrant, lease, span, interrupts);
    }

    /**
     * The lock with holds that interrupt the thread that acquired them when they are lost. No
     * interrupt comes once the release has begun. The asynchronous methods have no such thread, and
     * take no notice.
     *
     * @return the same lock
     */
    public DistributedLock withInterruptOnLoss() {
        return new DistributedLock(state, owner, reentrant, lease, maxHold, true);
    }

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
    public void lock() {
        if (!reenter()) {
            push(waitFor(Native.FOREVER, 0));
        }
    }

    /**
     * As {@link #lock}, but an interrupt ends the wait.
     *
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    @Override
    public void lockInterruptibly() throws InterruptedException {
        checkInterrupt();
        if (!reenter()) {
            push(waitInterruptibly(Native.FOREVER, 0));
        }
    }

    /**
     * Acquires the lock if it is free and nobody waits for it. An interrupt does not end the call.
     *
     * @return false when another holds it or waits for it
     * @throws StoreUnavailableException when the store did not answer
     */
    @Override
    public boolean tryLock() {
        if (!reenter()) {
            long hold = waitFor(Native.TRY, Native.QUIET_CONTENDED);
            if (hold < 0) {
                return false;
            }
            push(hold);
        }
        return true;
    }

    /**
     * Acquires the lock, waiting for at most {@code time}.
     *
     * @return false when others held it all the while
     * @throws StoreUnavailableException when the store could not be asked
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        checkInterrupt();
        if (!reenter()) {
            long hold =
                    waitInterruptibly(
                            Spans.patience(time, unit),
                            Native.QUIET_CONTENDED | Native.QUIET_TIMED_OUT);
            if (hold < 0) {
                return false;
            }
            push(hold);
        }
        return true;
    }

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
    public void unlock() {
        Object key = key();
        Level top = state.top(key);
        if (top != null && top.extra > 0) {
            // Gives nothing away, so it asks nothing: a loss is told by the last unlock.
            top.extra--;
            return;
        }
        top = top == null ? null : state.pop(key);
        if (top == null) {
            throw notHeld();
        }
        Hold.release(top.hold, top.interrupter);
    }

    /**
     * Not supported: a condition's signal would have to reach waiters in other processes, and a
     * signal that is lost with a process or a connection would leave them waiting for ever. Wait
     * for the state itself instead, in the store that has it.
     *
     * @throws UnsupportedOperationException always
     */
    @Override
    public Condition newCondition() {
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
    public boolean isHeldByCurrentThread() {
        return getHoldCount() > 0;
    }

    /**
     * How many valid holds the calling thread, or the explicit owner in this client, has on the
     * lock: those of {@link #lock} and those of {@link #acquire()}. Asks the store nothing.
     *
     * @return 0 when it has none, or has lost them
     */
    public int getHoldCount() {
        if (!reentrant) {
            return 0;
        }
        long holds = Native.holdCount(state.handle, kind(), number(), bytes());
        return Math.toIntExact(holds) + (owner == null ? state.extras(key()) : 0);
    }

    /**
     * The fencing token of what the calling thread, or the explicit owner, has locked by {@link
     * #lock} and its kin, if it can be trusted at this moment.
     *
     * @return the token, see {@link Hold#token}
     * @throws NotHeldException when it has not locked it
     * @throws LockLostException when the lock was lost
     */
    public long token() {
        Level top = state.top(key());
        if (top == null) {
            throw notHeld();
        }
        return Native.check(top.hold);
    }

    /**
     * Whether anybody holds the lock, by the store's word at the time of asking. Good for display,
     * never for a decision.
     *
     * @return true when there is a holder
     */
    public boolean isLocked() {
        if (VirtualThreads.current()) {
            Parking parking = new Parking();
            Native.isLockedAsync(state.handle, parking);
            return parking.await().number() != 0;
        }
        return Native.isLocked(state.handle);
    }

    /**
     * As {@link #isLocked}, without waiting.
     *
     * @return a future of the answer
     */
    public CompletableFuture<Boolean> isLockedAsync() {
        return Deferred.start(
                state.client.executor(),
                (result, number) -> number != 0,
                completion -> Native.isLockedAsync(state.handle, completion));
    }

    // ---- holds

    /**
     * Acquires the lock, waiting as long as it takes.
     *
     * @return the hold, to be closed
     * @throws InterruptedException when the thread was interrupted; nothing is held then
     */
    public Hold acquire() throws InterruptedException {
        checkInterrupt();
        return hold(waitInterruptibly(Native.FOREVER, 0));
    }

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
    public Hold acquire(Duration limit) throws InterruptedException {
        checkInterrupt();
        return hold(waitInterruptibly(Spans.patience(limit), 0));
    }

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
    public @Nullable Hold tryAcquire() {
        long hold = waitFor(Native.TRY, Native.QUIET_CONTENDED);
        return hold < 0 ? null : hold(hold);
    }

    /**
     * As {@link #acquire()}, without waiting. The hold belongs to nobody but who has it: without an
     * explicit {@link #withOwner owner} it does not re-enter, because an asynchronous task has no
     * thread of its own.
     *
     * <p>Cancelling the future, or completing it in any other way, leaves the queue; what was
     * granted meanwhile is given back.
     *
     * @return a future of the hold, which whoever takes it has to release
     */
    public CompletableFuture<Hold> acquireAsync() {
        return start(Native.FOREVER);
    }

    /**
     * As {@link #acquireAsync()}, waiting for at most {@code limit}.
     *
     * @param limit how long
     * @return a future that fails with {@link LockTimeoutException} when others held the lock all
     *     the while
     */
    public CompletableFuture<Hold> acquireAsync(Duration limit) {
        return start(Spans.patience(limit));
    }

    /**
     * Acquires the lock if it is free and nobody waits for it, without waiting for the store's
     * answer.
     *
     * @return a future of the hold; it fails with {@link LockContendedException} when another holds
     *     the lock or waits for it
     */
    public CompletableFuture<Hold> tryAcquireAsync() {
        return start(Native.TRY);
    }

    // ---- the common part

    private CompletableFuture<Hold> start(long timeout) {
        int kind = owner == null ? Owner.FRESH : owner.kind();
        return Deferred.start(
                state.client.executor(),
                (hold, number) -> new Hold(state.client, state.name, hold, null),
                Native::freeHold,
                completion ->
                        Native.acquireAsync(
                                state.handle,
                                timeout,
                                lease,
                                maxHold,
                                kind,
                                owner == null ? 0 : owner.number,
                                bytes(),
                                completion));
    }

    /** Waits; an interrupt does not end it. */
    private long waitFor(long timeout, int quiet) {
        if (VirtualThreads.current()) {
            Parking parking = new Parking();
            long operation = begin(timeout, parking);
            try {
                return parking.await().result(quiet);
            } finally {
                Native.freeOperation(operation);
            }
        }
        return block(timeout, 0, quiet);
    }

    /** Waits; an interrupt ends it, unless the lock was granted before it came. */
    private long waitInterruptibly(long timeout, int quiet) throws InterruptedException {
        int quietly = quiet | Native.QUIET_CANCELLED;
        long hold;
        if (VirtualThreads.current()) {
            Parking parking = new Parking();
            long operation = begin(timeout, parking);
            try {
                hold = parking.await(operation).result(quietly);
            } finally {
                Native.freeOperation(operation);
            }
        } else {
            hold = Interruption.during(cancel -> block(timeout, cancel, quietly));
        }
        if (hold == -ErrorCode.CANCELLED.number()) {
            Thread.interrupted();
            throw new InterruptedException(
                    "interrupted while waiting for the lock \"" + state.name + "\"");
        }
        return hold;
    }

    private long begin(long timeout, Completion completion) {
        return Native.acquireAsync(
                state.handle, timeout, lease, maxHold, kind(), number(), bytes(), completion);
    }

    private long block(long timeout, long cancel, int quiet) {
        return Native.acquire(
                state.handle, timeout, lease, maxHold, kind(), number(), bytes(), cancel, quiet);
    }

    private static void checkInterrupt() throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    private Hold hold(long handle) {
        Interrupter interrupter = interrupts ? Interrupter.watch(handle) : null;
        return new Hold(state.client, state.name, handle, interrupter);
    }

    private boolean reenter() {
        if (!reentrant) {
            throw new UnsupportedOperationException(
                    "the methods of java.util.concurrent.locks.Lock belong to a thread or an owner:"
                            + " use acquire, or a lock that is not nonReentrant()");
        }
        // Another lease, a ceiling, an interrupt on loss, an explicit owner: each needs a hold of
        // its own.
        return owner == null
                && lease == 0
                && maxHold == 0
                && !interrupts
                && state.reenter(Thread.currentThread());
    }

    private void push(long hold) {
        Object key = key();
        Interrupter interrupter = interrupts ? Interrupter.watch(hold) : null;
        state.push(key, hold, lease == 0 && maxHold == 0, interrupter);
    }

    /** Whom a level belongs to. */
    private Object key() {
        return owner != null ? owner : Thread.currentThread();
    }

    private int kind() {
        return !reentrant ? Owner.FRESH : owner == null ? Owner.LOCAL : owner.kind();
    }

    @SuppressWarnings("deprecation") // threadId() is younger than Java 17
    private long number() {
        return owner != null ? owner.number : reentrant ? Thread.currentThread().getId() : 0;
    }

    private byte @Nullable [] bytes() {
        return owner == null ? null : owner.bytes;
    }

    private NotHeldException notHeld() {
        String who = owner == null ? "this thread" : "the owner \"" + owner + "\"";
        return new NotHeldException(
                who
                        + " has not locked \""
                        + state.name
                        + "\": unlock undoes a lock() of its own; close a Hold by its close()");
    }

    @Override
    public String toString() {
        return "DistributedLock[" + state.name + "]";
    }
}
