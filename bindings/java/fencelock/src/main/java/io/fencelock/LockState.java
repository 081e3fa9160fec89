package io.fencelock;

import java.lang.ref.Cleaner;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * A lock of a client, or the side of a read-write lock that reads, the same for all {@link
 * NativeLock}s of its name: who entered it how often through the methods of {@link java.util.concurrent.locks.Lock}. The client refers to it
 * weakly while nobody has entered.
 */
final class LockState {
    final NativeClient client;
    final String name;

    /** Whether it is the side that reads. */
    final boolean reads;

    /** The native lock; an argument of nearly every call. */
    final long handle;

    private final Anchor anchor;
    private final ConcurrentHashMap<Object, Level> levels;

    /** The level pushed last: a shortcut past the map. */
    private volatile @Nullable Level latest;

    /** What the client keeps of a lock. */
    static final class Anchor extends WeakReference<LockState> {
        final String name;

        /** Set while somebody has entered, so that nobody's hold is swept up. */
        volatile @Nullable LockState entered;

        Anchor(String name, LockState state, ReferenceQueue<LockState> queue) {
            super(state, queue);
            this.name = name;
        }
    }

    LockState(
            NativeClient client,
            String name,
            boolean reads,
            Cleaner cleaner,
            ReferenceQueue<LockState> queue) {
        this.client = client;
        this.name = name;
        this.reads = reads;
        byte[] text = Text.encode("the name of a lock", name);
        handle = reads ? Native.readLock(client.handle(), text) : Native.lock(client.handle(), text);
        levels = new ConcurrentHashMap<>(4);
        anchor = new Anchor(name, this, queue);
        cleaner.register(this, new Sweep(handle, levels));
    }

    /** What is left to free when nobody can reach the lock any more. */
    private record Sweep(long handle, Map<Object, Level> levels) implements Runnable {
        @Override
        public void run() {
            for (Level top : levels.values()) {
                for (Level level = top; level != null; level = level.below) {
                    Native.freeHold(level.hold);
                }
            }
            Native.freeLock(handle);
        }
    }

    Anchor anchor() {
        return anchor;
    }

    /** The last level of an owner (an {@link Owner}, or a {@link ThreadId}), or null. */
    @Nullable Level top(Object owner) {
        Level level = latest;
        return level != null && level.owner.equals(owner) ? level : levels.get(owner);
    }

    /**
     * Counts a re-entry of a thread, if it has a hold that is renewed and still valid: the native
     * side is asked by a look at its clock, because a re-entry on an ended hold is a new grant.
     */
    boolean reenter(Object owner) {
        Level top = top(owner);
        if (top == null || !top.renewed || !Native.isValid(top.hold)) {
            return false;
        }
        top.extra = Math.addExact(top.extra, 1);
        return true;
    }

    /** Notes a new hold. */
    void push(
            Object owner, long hold, boolean renewed, @Nullable Interrupter interrupter) {
        Level pushed =
                levels.compute(
                        owner,
                        (key, below) -> new Level(key, hold, renewed, interrupter, below));
        anchor.entered = this;
        latest = pushed;
    }

    /** Takes the last level of an owner, to be released by the caller; null if there is none. */
    @Nullable Level pop(Object owner) {
        Level[] popped = new Level[1];
        levels.computeIfPresent(
                owner,
                (key, top) -> {
                    popped[0] = top;
                    return top.below;
                });
        Level top = popped[0];
        if (top != null && latest == top) {
            latest = null;
        }
        if (levels.isEmpty()) {
            anchor.entered = null;
            if (!levels.isEmpty()) {
                // Somebody entered meanwhile.
                anchor.entered = this;
            }
        }
        return top;
    }

    /** Re-entries of a thread that are counted here and valid. */
    int extras(Object owner) {
        int extras = 0;
        for (Level level = top(owner); level != null; level = level.below) {
            if (level.extra > 0 && Native.isValid(level.hold)) {
                extras += level.extra;
            }
        }
        return extras;
    }
}
