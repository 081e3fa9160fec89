package io.fencelock.kotlin

import java.util.concurrent.atomic.AtomicBoolean
import kotlin.coroutines.cancellation.CancellationException
import kotlin.time.Duration
import kotlin.time.toKotlinDuration
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.cancel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch

/**
 * A held lock, renewed in the background until it is released. Keep it where it can be reached: one that is
 * collected as garbage releases its lock, and a warning is logged.
 */
public class Hold internal constructor(private val native: NativeHold) : AutoCloseable {
    /** The name of the lock. */
    public val name: String
        get() = native.name()

    /**
     * The fencing token: greater than that of every earlier hold of this lock. Send it with every write, and
     * let the resource refuse a smaller one than it has seen. [downgrade] and [tryUpgrade] change it.
     */
    public val token: Long
        get() = native.token().toLong()

    /** What the hold lets beside it now. */
    public val mode: HoldMode
        get() = native.mode()

    /** Whether the hold can be trusted at this moment, by this machine's clock; asks the store nothing. */
    public val isValid: Boolean
        get() = native.isValid()

    /** How long the hold can be trusted from now on if it is not renewed; zero when it has ended. */
    public val remaining: Duration
        get() = native.remaining().toKotlinDuration()

    /** Whether the owner had the lock already when this hold was granted. */
    public val isReentry: Boolean
        get() = native.isReentry()

    /**
     * Whether the previous holder was lost instead of releasing. If so, what the lock protects may be half
     * done.
     */
    public val previousAbandoned: Abandoned
        get() = native.previousAbandoned()

    /** Whether another client waits for the lock, as far as is known. */
    public val isWanted: Boolean
        get() = native.isWanted()

    private val isOver = AtomicBoolean()

    init {
        collected.register(this, Forgotten(native.name(), isOver))
    }

    private val watchedLoss = lazy {
        val loss = CompletableDeferred<LossReason>()
        native.onLost(
            object : LossListener {
                override fun lost(reason: LossReason) {
                    loss.complete(reason)
                }
            }
        )
        unlessOver(loss)
    }
    private val watchedWish = lazy {
        val wish = CompletableDeferred<Unit>()
        native.onWanted(
            object : WantedListener {
                override fun wanted() {
                    wish.complete(Unit)
                }
            }
        )
        unlessOver(wish)
    }

    /** Completes when the hold is lost; is cancelled when it is released. */
    public val lost: Deferred<LossReason> by watchedLoss

    /**
     * Completes when another client waits for the lock; is cancelled when the hold is released. A holder that
     * can pause its work may then release, and acquire again.
     */
    public val wanted: Deferred<Unit> by watchedWish

    /**
     * The token, if the hold can be trusted at this moment.
     *
     * @throws FencelockException.Lost when it has ended
     */
    public fun check(): Long = native.check().toLong()

    /**
     * Sets the lease from now on; never shortens it.
     *
     * @param lease 0.1 s to 7 days
     * @throws FencelockException.Lost when the hold has ended
     * @throws FencelockException.Unavailable when the store did not answer: the lease may or may not be longer
     */
    public suspend fun extend(lease: Duration): Unit = native.extendAsync(lease.toNative("a lease"))

    /**
     * Reads from now on instead of writing, without letting go of the lock: other readers are let in, and no
     * writer comes between. Nothing, if the hold reads already. It begins at once; cancelling does not undo it.
     *
     * @throws FencelockException.Contended when the lock's owner writes by another hold, too
     * @throws FencelockException.Unsupported on ZooKeeper, for a hold of a plain lock
     * @throws FencelockException.Unavailable when the store did not answer: the hold reads all the same
     * @throws FencelockException.Lost when the hold has ended
     */
    public suspend fun downgrade(): Unit = native.downgradeAsync()

    /**
     * Writes from now on instead of reading, if nobody else has the lock, past whoever waits for it. It does not
     * wait: two readers that waited for each other's end would do so for ever. Whoever is cancelled meanwhile
     * finds in [mode] what came of it.
     *
     * @return false when others read, or the lock's owner by another hold: the hold goes on reading
     * @throws FencelockException.Unsupported on ZooKeeper
     * @throws FencelockException.Unavailable when the store did not answer: it goes on reading
     * @throws FencelockException.Lost when the hold has ended
     */
    public suspend fun tryUpgrade(): Boolean =
        try {
            native.tryUpgradeAsync()
            true
        } catch (_: FencelockException.Contended) {
            false
        }

    /**
     * A short text with which another coroutine, process or language goes on with this hold, by [Client.attach].
     * It is no secret, but whoever has it can join the hold.
     *
     * @throws FencelockException.InvalidArgument unless the lock was acquired for an owner by [Owner.of], and not to read
     */
    public fun ticket(): String = native.ticket()

    /**
     * Releases, and returns when the store, or the next holder of this program, has the lock. It begins at
     * once; cancelling does not undo it.
     *
     * @throws FencelockException.Lost when the hold had ended before
     * @throws FencelockException.NotHeld when it was released before
     * @throws FencelockException.Unavailable when the store did not answer: it goes on in the background
     */
    public suspend fun release() {
        try {
            native.releaseAsync()
        } catch (lost: FencelockException.Lost) {
            // Who awaits the loss is told of it by its own way.
            isOver.set(true)
            if (watchedWish.isInitialized()) wanted.cancel(released())
            throw lost
        } catch (failed: Throwable) {
            over()
            throw failed
        }
        over()
    }

    /**
     * Begins the release, which goes on in the background, and waits for nobody; nothing, if the hold was
     * released already. For `use`.
     *
     * @throws FencelockException.Lost when the hold had ended before
     */
    override fun close() {
        if (isOver.getAndSet(true)) return
        native.beginRelease()
        over()
    }

    override fun toString(): String = "Hold($name, token $token, ${if (isValid) "valid" else "ended"})"

    /** At the end of a block; gives what its caller should hear of. */
    internal suspend fun leave(): FencelockException? =
        try {
            if (!isOver.get()) release()
            null
        } catch (_: FencelockException.Unavailable) {
            // It was valid until the end, and nobody can do more than what goes on in the background.
            null
        } catch (failed: FencelockException) {
            failed
        }

    internal suspend fun <T> cancelWhenLost(block: suspend (Hold) -> T): T =
        try {
            coroutineScope {
                val scope = this
                val watch = launch { scope.cancel(Loss(lost.await())) }
                try {
                    block(this@Hold)
                } finally {
                    watch.cancel()
                }
            }
        } catch (loss: Loss) {
            throw FencelockException.Lost("the lock \"$name\" was lost: ${loss.message}").initCause(loss)
        }

    private fun over() {
        isOver.set(true)
        if (watchedLoss.isInitialized()) lost.cancel(released())
        if (watchedWish.isInitialized()) wanted.cancel(released())
    }

    private fun <T> unlessOver(watched: CompletableDeferred<T>): Deferred<T> {
        if (isOver.get()) watched.cancel(released())
        return watched
    }

    private fun released() = CancellationException("the hold was released")

    /** Says that a hold was collected unreleased; what is generated releases it. */
    private class Forgotten(private val name: String, private val isOver: AtomicBoolean) : Runnable {
        override fun run() {
            if (!isOver.getAndSet(true)) {
                System.getLogger("io.fencelock").log(
                    System.Logger.Level.WARNING,
                    "a hold of the lock \"{0}\" was forgotten: it is released now; release holds, best by withLock",
                    name,
                )
            }
        }
    }

    private class Loss(reason: LossReason) : CancellationException(reason.name)
}
