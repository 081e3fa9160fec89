package io.fencelock.bench;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** A lock of any library. */
interface Mutex {
    void lock();

    void unlock();

    /** Locks without renewal, for so many milliseconds where the library lets its caller say it. */
    default void lock(long lease) {
        lock();
    }

    /** Begins to lock for a caller of this number, who need not be a thread if the library can. */
    default CompletionStage<?> ask(long caller) {
        return CompletableFuture.runAsync(this::lock, Callers::spawn);
    }
}
