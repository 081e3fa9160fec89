package io.fencelock;

import java.util.concurrent.locks.ReadWriteLock;

/**
 * A lock that any number of readers have together, or one writer alone, among all clients of a store.
 *
 * <pre>{@code
 * DistributedReadWriteLock prices = client.readWriteLock("prices");
 * DistributedLock reading = prices.readLock();
 * reading.lock();
 * try {
 *     show(list.read(reading.token()));
 * } finally {
 *     reading.unlock();
 * }
 * }</pre>
 *
 * <p>Each side is a {@link DistributedLock} with all that one has: holds, futures, owners, leases, the
 * news of a loss. The side that writes is {@link FencelockClient#lock} of the same name: one name, one
 * queue.
 *
 * <p>What differs from {@link java.util.concurrent.locks.ReentrantReadWriteLock}:
 *
 * <ul>
 *   <li>It is fair. Readers and writers are served in the order in which they came; a reader that comes
 *       while a writer waits stands behind it, and {@code tryLock()} of either side does not pass
 *       whoever waits.
 *   <li>Who reads and asks to write gets a {@link WouldDeadlockException}, an {@link
 *       IllegalMonitorStateException}, at once, from each of the write side's methods, and from {@code
 *       tryLock} too. There, {@code lock()} would wait for ever.
 *   <li>An explicit lease ends its reader alone; readers of one client share a hold at the store, and each
 *       is told of its loss. A lost reader is nobody's {@link Hold#previousAbandoned}.
 * </ul>
 *
 * <p>As there, who reads may read again past a writer that waits, and who writes may write and read
 * again; who then unlocks the side that writes goes on reading, beside others. {@link Hold#downgrade} does
 * that to a hold, and {@link Hold#tryUpgrade} makes a lone reader's one that writes.
 *
 * <p>A writer's token is greater than all before it; a reader's is greater than every earlier writer's
 * and smaller than every later one's, and says nothing of other readers. What the lock protects keeps
 * the greatest token of a writer and the greatest of anybody: it refuses a write whose token is below
 * the second, and a read whose token is below the first.
 */
public interface DistributedReadWriteLock extends ReadWriteLock {
    /**
     * The name of the lock.
     *
     * @return the name
     */
    String name();

    /**
     * The side that reads. Its {@link DistributedLock#isLocked} says whether anybody reads or writes.
     *
     * @return the same lock each time
     */
    @Override
    DistributedLock readLock();

    /**
     * The side that writes: equal to {@link FencelockClient#lock} of this name.
     *
     * @return the same lock each time
     */
    @Override
    DistributedLock writeLock();
}
