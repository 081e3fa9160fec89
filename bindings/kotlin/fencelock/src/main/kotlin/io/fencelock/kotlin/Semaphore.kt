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
     * This object's number, or the one that it follows, less what the store says is taken. Good for display, never for a decision: it may
     * have changed when the answer arrives.
     */
    public suspend fun availablePermits(): Int = native.availablePermitsAsync().toInt()

    /**
     * Gives the semaphore another number of [permits] until nobody holds or waits; false when nobody does, and
     * whoever comes next says how many there are. Of more, whoever fits enters at once. Of fewer, nobody loses one,
     * and nobody enters until enough have come back. Everybody who comes later must say the new number, or be
     * [adopting].
     *
     * @throws FencelockException.InvalidArgument unless it is 1 to 1,000,000
     * @throws FencelockException.Misconfigured while the name is a lock's
     */
    public suspend fun resize(permits: Int): Boolean = native.resizeAsync(permits.toNative("the number of permits"))

    /**
     * The same semaphore, following the number of those who hold or wait where that is not [permits]: for who
     * cannot know of a [resize]. Its own number counts when nobody does, and is the most that one acquire takes;
     * more than there are is a [FencelockException.InvalidArgument] then, as after a resize.
     */
    public fun adopting(): Semaphore = Semaphore(native.adopting())

    override fun toString(): String = "Semaphore($name of $permits)"

    private fun taking(count: Int) = Lock(native.taking(count.toNative("the number of permits")))
}
