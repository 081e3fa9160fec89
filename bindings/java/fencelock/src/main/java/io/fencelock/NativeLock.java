package io.fencelock;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A lock with the options of its acquisitions; all that is said of it once, for all of its objects,
 * is in {@link LockState}.
 */
final class NativeLock extends Acquirer<Hold> implements DistributedLock {
    private final LockState state;
    private final @Nullable Owner owner;
    private final boolean reentrant;
    private final long lease;
    private final long maxHold;
    private final boolean interrupts;

    NativeLock(LockState state) {
        this(state, null, true, 0, 0, false);
    }

    private NativeLock(
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

    @Override
    public String name() {
        return state.name;
    }

    // ---- options

    @Override
    public DistributedLock withOwner(Owner owner) {
        return new NativeLock(state, owner, true, lease, maxHold, interrupts);
    }

    @Override
    public DistributedLock nonReentrant() {
        return new NativeLock(state, null, false, lease, maxHold, interrupts);
    }

    @Override
    public DistributedLock withLease(Duration lease) {
        long span = Spans.positive("the lease", lease);
        return new NativeLock(state, owner, reentrant, span, maxHold, interrupts);
    }

    @Override
    public DistributedLock withMaxHold(Duration ceiling) {
        long span = Spans.positive("maxHold", ceiling);
        return new NativeLock(state, owner, reentrant, lease, span, interrupts);
    }

    @Override
    public DistributedLock withInterruptOnLoss() {
        return new NativeLock(state, owner, reentrant, lease, maxHold, true);
    }

    // ---- java.util.concurrent.locks.Lock

    @Override
    public void lock() {
        if (!reenter()) {
            push(waitFor(Native.FOREVER, 0));
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        checkInterrupt();
        if (!reenter()) {
            push(waitInterruptibly(Native.FOREVER, 0));
        }
    }

    @Override
    public boolean tryLock() {
        if (!reenter()) {
            long hold = waitFor(Native.TRY, Completion.CONTENDED);
            if (hold == 0) {
                return false;
            }
            push(hold);
        }
        return true;
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        checkInterrupt();
        if (!reenter()) {
            long hold =
                    waitInterruptibly(
                            Spans.patience(time, unit),
                            Completion.CONTENDED | Completion.TIMED_OUT);
            if (hold == 0) {
                return false;
            }
            push(hold);
        }
        return true;
    }

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
        NativeHold.release(top.hold, top.interrupter, this);
    }

    // ---- who holds it

    @Override
    public int getHoldCount() {
        if (!reentrant) {
            return 0;
        }
        long holds = Native.holdCount(state.handle, kind(), number(), bytes());
        return Math.toIntExact(holds) + (owner == null ? state.extras(key()) : 0);
    }

    @Override
    public long token() {
        return Native.token(top().hold);
    }

    @Override
    public long check() {
        return Native.check(top().hold);
    }

    private Level top() {
        Level top = state.top(key());
        if (top == null) {
            throw notHeld();
        }
        return top;
    }

    @Override
    public boolean isLocked() {
        if (VirtualThreads.current()) {
            Parking parking = new Parking(this);
            Native.isLockedAsync(state.handle, parking);
            return parking.await().number() != 0;
        }
        return Native.isLocked(state.handle);
    }

    @Override
    public CompletableFuture<Boolean> isLockedAsync() {
        return Deferred.start(
                state.client.executor(),
                (result, number) -> number != 0,
                completion -> Native.isLockedAsync(state.handle, completion));
    }

    // ---- holds

    @Override
    public Hold acquire() throws InterruptedException {
        checkInterrupt();
        return hold(waitInterruptibly(Native.FOREVER, 0), interrupts);
    }

    @Override
    public Hold acquire(Duration limit) throws InterruptedException {
        checkInterrupt();
        return hold(waitInterruptibly(Spans.patience(limit), 0), interrupts);
    }

    @Override
    public @Nullable Hold tryAcquire() {
        long hold = waitFor(Native.TRY, Completion.CONTENDED);
        return hold == 0 ? null : hold(hold, interrupts);
    }

    @Override
    public @Nullable Hold tryAcquire(Duration limit) throws InterruptedException {
        checkInterrupt();
        long hold =
                waitInterruptibly(
                        Spans.patience(limit), Completion.CONTENDED | Completion.TIMED_OUT);
        return hold == 0 ? null : hold(hold, interrupts);
    }

    @Override
    public CompletableFuture<Hold> acquireAsync() {
        return start(Native.FOREVER, 0);
    }

    @Override
    public CompletableFuture<Hold> acquireAsync(Duration limit) {
        return start(Spans.patience(limit), 0);
    }

    @Override
    public CompletableFuture<@Nullable Hold> tryAcquireAsync() {
        return start(Native.TRY, Completion.CONTENDED);
    }

    @Override
    public CompletableFuture<@Nullable Hold> tryAcquireAsync(Duration limit) {
        return start(
                Spans.patience(limit), Completion.CONTENDED | Completion.TIMED_OUT);
    }

    // ---- the common part

    @Override
    NativeClient client() {
        return state.client;
    }

    @Override
    String what() {
        return "the lock \"" + state.name + "\"" + (state.reads ? ", to read" : "");
    }

    @Override
    long begin(long timeout, long block, Completion completion) {
        return begin(timeout, kind(), number(), block, completion);
    }

    @Override
    long beginForTask(long timeout, Completion completion) {
        int kind = owner == null ? Owner.FRESH : owner.kind();
        long number = owner == null ? 0 : owner.number;
        return begin(timeout, kind, number, 0, completion);
    }

    private long begin(long timeout, int kind, long number, long block, Completion completion) {
        return Native.acquire(
                state.handle, timeout, lease, maxHold, kind, number, bytes(), block, completion);
    }

    @Override
    Hold hold(long handle, boolean interrupts) {
        Interrupter interrupter = interrupts ? Interrupter.watch(handle) : null;
        return new NativeHold(state.client, state.name, handle, interrupter);
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
                && state.reenter(key());
    }

    private void push(long hold) {
        Object key = key();
        Interrupter interrupter = interrupts ? Interrupter.watch(hold) : null;
        state.push(key, hold, lease == 0 && maxHold == 0, interrupter);
    }

    /** Whom a level belongs to. */
    private Object key() {
        return owner != null ? owner : (Object) ThreadId.current();
    }

    private int kind() {
        return !reentrant ? Owner.FRESH : owner == null ? Owner.LOCAL : owner.kind();
    }

    private long number() {
        return owner != null ? owner.number : reentrant ? ThreadId.current() : 0;
    }

    private byte @Nullable [] bytes() {
        return owner == null ? null : owner.bytes;
    }

    private NotHeldException notHeld() {
        String who = owner == null ? "this thread" : "the owner \"" + owner + "\"";
        return new NotHeldException(
                who
                        + " has not locked "
                        + what()
                        + ": unlock undoes a lock() of its own; close a Hold by its close()");
    }

    /** Equal are those by which the same is acquired: of one lock of one client, with equal options. */
    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof NativeLock lock
                && state == lock.state
                && Objects.equals(owner, lock.owner)
                && reentrant == lock.reentrant
                && lease == lock.lease
                && maxHold == lock.maxHold
                && interrupts == lock.interrupts;
    }

    @Override
    public int hashCode() {
        return Objects.hash(System.identityHashCode(state), owner, reentrant, lease, maxHold);
    }

    @Override
    public String toString() {
        return "DistributedLock[" + state.name + (state.reads ? ", to read]" : "]");
    }
}
