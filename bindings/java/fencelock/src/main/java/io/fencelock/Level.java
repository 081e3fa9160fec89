package io.fencelock;

import org.jspecify.annotations.Nullable;

/**
 * One acquisition through the methods of {@link java.util.concurrent.locks.Lock}, to be ended by an
 * {@code unlock}; and the re-entries that are counted here instead of at the native side. Those of
 * one owner are a stack.
 */
final class Level {
    final Object owner;
    final long hold;

    /** Renewed until it is released: then re-entries may share it. */
    final boolean renewed;

    final @Nullable Interrupter interrupter;
    final @Nullable Level below;

    /** Re-entries counted here. Used by the owning thread only. */
    int extra;

    Level(
            Object owner,
            long hold,
            boolean renewed,
            @Nullable Interrupter interrupter,
            @Nullable Level below) {
        this.owner = owner;
        this.hold = hold;
        this.renewed = renewed;
        this.interrupter = interrupter;
        this.below = below;
    }
}
