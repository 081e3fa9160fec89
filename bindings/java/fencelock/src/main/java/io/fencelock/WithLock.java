package io.fencelock;

import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Work under a lock, without a thread that waits for either. */
final class WithLock {
    private WithLock() {}

    static <H extends Hold, T extends @Nullable Object> CompletableFuture<T> run(
            CompletableFuture<H> acquiring,
            Function<? super H, ? extends CompletionStage<T>> work) {
        Objects.requireNonNull(work, "work");
        CompletableFuture<T> result = new CompletableFuture<>();
        acquiring.whenComplete(
                (hold, refused) -> {
                    if (refused != null) {
                        result.completeExceptionally(cause(refused));
                        return;
                    }
                    begin(hold, work, result)
                            .whenComplete((value, failed) -> end(hold, value, failed, result));
                });
        // Leaves the queue; nothing when the lock is held already.
        result.whenComplete((value, failed) -> acquiring.cancel(false));
        return result;
    }

    private static <H extends Hold, T extends @Nullable Object> CompletionStage<T> begin(
            H hold,
            Function<? super H, ? extends CompletionStage<T>> work,
            CompletableFuture<T> result) {
        if (result.isDone()) {
            // Cancelled just now: nobody wants the work any more.
            return result;
        }
        try {
            return Objects.requireNonNull(work.apply(hold), "the work gave no stage, but null");
        } catch (Throwable e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    /** Ends with the word of the release, which the work's own failure goes before. */
    private static <T extends @Nullable Object> void end(
            Hold hold, T value, @Nullable Throwable failed, CompletableFuture<T> result) {
        hold.releaseAsync()
                .whenComplete(
                        (nothing, unreleased) -> {
                            Throwable lost = unreleased == null ? null : cause(unreleased);
                            if (lost instanceof NotHeldException
                                    || lost instanceof StoreUnavailableException) {
                                // The work has released it itself; or it goes on in the background.
                                lost = null;
                            }
                            if (failed != null) {
                                Throwable first = cause(failed);
                                if (lost != null && lost != first) {
                                    first.addSuppressed(lost);
                                }
                                result.completeExceptionally(first);
                            } else if (lost != null) {
                                result.completeExceptionally(lost);
                            } else {
                                result.complete(value);
                            }
                        });
    }

    /** What a stage that hangs on another one says the other failed with. */
    private static Throwable cause(Throwable failure) {
        Throwable cause = failure.getCause();
        return failure instanceof CompletionException && cause != null ? cause : failure;
    }
}
