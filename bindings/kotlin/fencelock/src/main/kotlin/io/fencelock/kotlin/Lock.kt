package io.fencelock.kotlin

import kotlin.time.Duration
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext

/**
 * A lock: a name on a client's store. From [Client.lock]; for all coroutines and threads.
 *
 * Who waits is served in his turn. A coroutine that is cancelled while it waits, at whichever moment,
 * holds nothing and stands in no queue afterwards.
 */
public class Lock internal constructor(private val native: NativeLock) {
    /** The lock's name. */
    public val name: String = native.name()

    /**
     * Acquires, runs [block], and releases.
     *
     * @param timeout how long to wait; without it, as long as it takes; zero and below: not at all
     * @param cancelOnLoss cancels the block when the lock is lost
     * @throws FencelockException.Lost when the lock was lost before the block ended: what it did may
     *   have overlapped with another holder. If the block threw, that comes first.
     * @throws FencelockException.TimedOut when others held the lock for all of the timeout
     */
    public suspend fun <T> withLock(
        timeout: Duration? = null,
        cancelOnLoss: Boolean = false,
        block: suspend (Hold) -> T,
    ): T {
        val hold = acquire(timeout)
        val result =
            try {
                if (cancelOnLoss) hold.cancelWhenLost(block) else block(hold)
            } catch (failed: Throwable) {
                withContext(NonCancellable) { hold.leave() }?.let(failed::addSuppressed)
                throw failed
            }
        withContext(NonCancellable) { hold.leave() }?.let { throw it }
        return result
    }

    /**
     * Acquires, waiting for as long as it takes, or for [timeout] (zero and below: not at all). An outage of the store is waited out.
     *
     * Prefer the timeout to `withTimeout` around this: where that one fires just as the lock is granted, the
     * hold is lost sight of, and is released only when it is collected as garbage.
     *
     * @throws FencelockException.TimedOut when others held the lock for all of the timeout
     * @throws FencelockException.Unavailable when the store could not be asked within the timeout
     * @throws FencelockException.Closed when the client is closed
     */
    public suspend fun acquire(timeout: Duration? = null): Hold =
        native.beginAcquire(timeout?.takeUnless { it == Duration.INFINITE }?.toNative()).await()

    /** Acquires without waiting for others; null when somebody has the lock, or waits for it. */
    public suspend fun tryAcquire(): Hold? =
        try {
            acquire(Duration.ZERO)
        } catch (_: FencelockException.Contended) {
            null
        }

    /**
     * Whether anybody, on any machine, holds the lock, by the store's word. Good for display, never for a
     * decision: it may have changed when the answer arrives.
     */
    public suspend fun isLocked(): Boolean = native.isLockedAsync()

    /** How many holds the lock's owner has on it in this client; without an owner, none. */
    public val holdCount: Int
        get() = native.holdCount().toInt()

    override fun toString(): String = "Lock($name)"
}

/** Waits, and fetches the hold. Closing gives back what was not fetched. */
internal suspend fun NativeAcquiring.await(): Hold = use {
    ended()
    Hold(hold())
}
