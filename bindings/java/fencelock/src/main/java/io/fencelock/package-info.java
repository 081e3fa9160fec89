/**
 * A distributed lock for threads, virtual threads and asynchronous code.
 *
 * <p>{@link io.fencelock.FencelockClient} connects to a store; {@link io.fencelock.DistributedLock}
 * is a {@link java.util.concurrent.locks.Lock} of that store; {@link io.fencelock.Hold} is one
 * acquisition of it, with its fencing token.
 *
 * <p>Nothing here is null, and nothing may be passed as null, unless it is marked
 * {@link org.jspecify.annotations.Nullable}.
 */
@NullMarked
package io.fencelock;

import org.jspecify.annotations.NullMarked;
