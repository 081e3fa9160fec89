package io.fencelock.kotlin

import kotlin.time.Duration

/**
 * A read-write lock: any number of readers hold it together, or one writer alone. From [Client.rwLock]; for
 * all coroutines and threads.
 *
 * Readers and writers wait in one queue, first come, first served, so a stream of readers never keeps a writer
 * out. Without an owner each acquire is on its own: a block of [withReadLock] that asks for the same lock again
 * may wait for itself. With one, an owner that writes may write and read within, and one that reads may read
 * again; one that reads and asks to write is told so by a [FencelockException.WouldDeadlock], at once.
 */
public class RwLock internal constructor(private val native: NativeRwLock) {
    /** The lock's name. */
    public val name: String = native.name()

    /**
     * The side that reads: a lock whose holders are in together. Each has a token above that of every earlier
     * writer and below that of every later one.
     */
    public val reader: Lock = Lock(native.reader())

    /** The side that writes: the lock that [Client.lock] gives for this name. */
    public val writer: Lock = Lock(native.writer())

    /**
     * Acquires to read, runs [block], and releases; as [Lock.withLock] otherwise.
     *
     * @throws FencelockException.Misconfigured while the name is a semaphore's
     * @throws FencelockException.Unsupported when the store has no read-write locks
     */
    public suspend fun <T> withReadLock(
        timeout: Duration? = null,
        cancelOnLoss: Boolean = false,
        block: suspend (Hold) -> T,
    ): T = reader.withLock(timeout, cancelOnLoss, block)

    /**
     * Acquires to write, runs [block], and releases; as [Lock.withLock] otherwise.
     *
     * @throws FencelockException.WouldDeadlock when the lock's owner reads
     * @throws FencelockException.Misconfigured while the name is a semaphore's
     */
    public suspend fun <T> withWriteLock(
        timeout: Duration? = null,
        cancelOnLoss: Boolean = false,
        block: suspend (Hold) -> T,
    ): T = writer.withLock(timeout, cancelOnLoss, block)

    override fun toString(): String = "RwLock($name)"
}
