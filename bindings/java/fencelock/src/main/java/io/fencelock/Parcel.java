package io.fencelock;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/**
 * The handle that came of a call, on its way to its future. Whoever takes it has it; if its task is
 * forgotten, by an executor that was shut down or throws tasks away, the collector gives it back.
 */
final class Parcel implements Runnable {
    private final AtomicLong handle;
    private final LongConsumer discard;
    private final CompletableFuture<?> future;

    Parcel(long handle, LongConsumer discard, CompletableFuture<?> future) {
        this.handle = new AtomicLong(handle);
        this.discard = discard;
        this.future = future;
    }

    /** The handle, once; then 0. */
    long take() {
        return handle.getAndSet(0);
    }

    /** Gives the handle back, unless somebody has it. */
    boolean discard() {
        long left = take();
        if (left != 0) {
            discard.accept(left);
        }
        return left != 0;
    }

    /** The task is gone, and was not run. */
    @Override
    public void run() {
        if (discard()) {
            RejectedExecutionException lost =
                    new RejectedExecutionException(
                            "the executor lost what came of this call; it was given back");
            ForkJoinPool.commonPool().execute(() -> future.completeExceptionally(lost));
        }
    }
}
