package io.fencelock.kotlin

import kotlin.time.Duration

/**
 * A semaphore: so many permits, of which each acquire takes one or several until its hold is released or lost.
 * From [Client.semaphore]; for all coroutines and threads.
 *
 * Who waits is served in his turn: a small request never passes a larger one. Permits have no owner, and those
 * of a program that dies are free again when their lease is over. Their tokens name the grants, and are no
 * fence: several are valid at a time.
 */
public class Semaphore internal constructor(private val native: NativeSemaphore) {
    /** The semaphore's name. */
    public val name: String = native.name()

    /** How many permits it has, as this object was told. */
    public val permits: Int = native.permits().toInt()

    /**
     * Takes [count] permits together, runs [block], and gives them back; as [Lock.withLock] otherwise.
     *
     * @throws FencelockException.InvalidArgument unless the count is 1 to [permits]
     * @throws FencelockException.Misconfigured while others hold or wait who named another number of permits,
     *   or while the name is a lock's
     * @throws FencelockException.Unsupported when the store has no semaphores
     */
    public suspend fun <T> withPermit(
        count: Int = 1,
        timeout: Duration? = null,
        cancelOnLoss: Boolean = false,
        block: suspend (Hold) -> T,
    ): T = taking(count).withLock(timeout, cancelOnLoss, block)

    /**
     * Takes [count] permits together, waiting for as long as it takes, or for [timeout] (zero and below: not at
     * all). The hold gives them back together.
     *
     * @throws FencelockException as [withPermit], and [Lock.acquire]
     */
    public suspend fun acquire(count: Int = 1, timeout: Duration? = null): Hold = taking(count).acquire(timeout)

    /** Takes [count] permits if so many are free and nobody waits; otherwise null. */
    public suspend fun tryAcquire(count: Int = 1): Hold? = taking(count).tryAcquire()

    /**
     * This object's number less what the store says is taken. Good for display, never for a decision: it may
     * have changed when the answer arrives.
     */
    public suspend fun availablePermits(): Int = native.availablePermitsAsync().toInt()

    override fun toString(): String = "Semaphore($name of $permits)"

    private fun taking(count: Int) = Lock(native.taking(count.toNative("the number of permits")))
}
