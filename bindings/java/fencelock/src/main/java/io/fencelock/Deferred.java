package io.fencelock;

import java.lang.ref.Reference;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/** A future that an asynchronous call completes. */
final class Deferred<T extends @Nullable Object> extends Completion {
    /** Makes of a call's outcome what the caller sees. */
    interface Conversion<T extends @Nullable Object> {
        T convert(long result, long number);
    }

    /** Begins the call; gives its operation, or 0. */
    interface Start {
        long begin(Completion completion);
    }

    private final CompletableFuture<T> future = new CompletableFuture<>();
    private final Thread starter = Thread.currentThread();
    private final Executor executor;

    /** Statuses that give null instead of a failure, as bits. */
    private final int quiet;

    private final Conversion<T> conversion;

    /** Gives back a result that nobody wants any more. */
    private final LongConsumer discard;

    private long operation;
    private boolean ended;

    private Deferred(
            Executor executor,
            int quiet,
            Conversion<T> conversion,
            LongConsumer discard) {
        this.executor = executor;
        this.quiet = quiet;
        this.conversion = conversion;
        this.discard = discard;
    }

    /**
     * Begins a call. A failure to begin is a failed future as well. When the future is completed by
     * somebody else, the call is cancelled, and what came of it all the same is discarded.
     */
    static <T extends @Nullable Object> CompletableFuture<T> start(
            Executor executor,
            int quiet,
            Conversion<T> conversion,
            LongConsumer discard,
            Start start) {
        Deferred<T> deferred = new Deferred<>(executor, quiet, conversion, discard);
        try {
            deferred.bind(start.begin(deferred));
        } catch (FencelockException | NotHeldException | WouldDeadlockException e) {
            deferred.future.completeExceptionally(e);
        }
        return deferred.future;
    }

    /** A call whose every failure is one. */
    static <T extends @Nullable Object> CompletableFuture<T> start(
            Executor executor,
            Conversion<T> conversion,
            LongConsumer discard,
            Start start) {
        return start(executor, 0, conversion, discard, start);
    }

    /** A call that gives no handle and cannot be cancelled. */
    static <T extends @Nullable Object> CompletableFuture<T> start(
            Executor executor,
            Conversion<T> conversion,
            Consumer<Completion> start) {
        return start(
                executor,
                conversion,
                result -> {},
                completion -> {
                    start.accept(completion);
                    return 0;
                });
    }

    private void bind(long operation) {
        if (operation == 0) {
            return;
        }
        synchronized (this) {
            if (!ended) {
                this.operation = operation;
                operation = 0;
            }
        }
        if (operation != 0) {
            Native.freeOperation(operation);
        } else {
            future.whenComplete((value, failure) -> cancel());
        }
    }

    private synchronized void cancel() {
        if (operation != 0) {
            Native.cancelOperation(operation);
        }
    }

    @Override
    void done(int status, long result, long number, byte @Nullable [] message) {
        long operation;
        synchronized (this) {
            ended = true;
            operation = this.operation;
            this.operation = 0;
        }
        if (operation != 0) {
            Native.freeOperation(operation);
        }
        if (Thread.currentThread() == starter) {
            // Nobody has seen the future yet, so this runs nobody's code.
            settle(status, result, number, message);
        } else if (future.isDone()) {
            discard(result);
        } else if (result == 0) {
            Tasks.run(executor, () -> settle(status, 0, number, message));
        } else {
            hand(result, number);
        }
    }

    /** Hands a handle over by way of the executor, which may refuse the task, fail, or forget it. */
    private void hand(long result, long number) {
        Parcel parcel = new Parcel(result, discard, future);
        try {
            Runnable task = new Delivery(parcel, number);
            NativeClient.CLEANER.register(task, parcel);
            future.whenComplete((value, failure) -> parcel.discard());
            Tasks.run(executor, task);
        } catch (Throwable e) {
            // Not even the memory for it.
            if (parcel.discard()) {
                future.completeExceptionally(e);
            }
        }
    }

    /** What the executor runs. An object of its own, for the cleaner to watch. */
    private final class Delivery implements Runnable {
        private final Parcel parcel;
        private final long number;

        Delivery(Parcel parcel, long number) {
            this.parcel = parcel;
            this.number = number;
        }

        @Override
        public void run() {
            try {
                long result = parcel.take();
                if (result != 0) {
                    settle(0, result, number, null);
                }
            } finally {
                Reference.reachabilityFence(this);
            }
        }
    }

    private void settle(int status, long result, long number, byte @Nullable [] message) {
        if (isQuiet(quiet, status)) {
            future.complete(null);
        } else if (status != 0) {
            future.completeExceptionally(failure(status, message));
        } else if (future.isDone()) {
            discard(result);
        } else {
            T value;
            try {
                value = conversion.convert(result, number);
            } catch (RuntimeException | Error e) {
                // A handle that was used up already is refused.
                discard(result);
                future.completeExceptionally(e);
                return;
            }
            if (!future.complete(value)) {
                // Somebody else completed it meanwhile.
                if (value instanceof NativeHold hold) {
                    hold.abandon();
                } else if (value instanceof NativeClient client) {
                    client.abandon();
                }
            }
        }
    }

    private void discard(long result) {
        if (result != 0) {
            discard.accept(result);
        }
    }
}
