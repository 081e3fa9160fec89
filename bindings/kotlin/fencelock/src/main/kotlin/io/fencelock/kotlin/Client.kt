package io.fencelock.kotlin

import com.sun.jna.CallbackThreadInitializer
import com.sun.jna.Native
import java.time.Instant
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds

/**
 * A connection to a store, for all coroutines and threads of the program: make one and keep it.
 *
 * [Client.connect] makes one. What is held when it is closed counts as abandoned, and the next holder
 * is told so. When the virtual machine shuts down while a client is open, that waits for what it holds to
 * be released, for the `shutdownGrace` at most, and closes itself then.
 */
public class Client
private constructor(private val native: NativeClient, shutdownGrace: Duration?) : AutoCloseable {
    private val atShutdown = shutdownGrace?.let { ShutdownHook.add(native, it) }?.also { it.leaveWith(this) }

    /** The 16 hexadecimal digits under which the store knows this client. */
    public val id: String = native.id()

    /** What the store can and cannot do. */
    public val capabilities: Capabilities
        get() = native.capabilities()

    /** Whether the client was closed. */
    public val isClosed: Boolean
        get() = native.isShutDown()

    /**
     * The lock [name]; asks the store nothing.
     *
     * Without an [owner] each acquire is on its own and waits for all others, as with a `Mutex`. With a
     * [lease] (0.1 s to 7 days) a hold is not renewed and ends with it; with [maxHold] it is renewed for
     * so long at most.
     *
     * @throws FencelockException.InvalidArgument for the name or the owner
     */
    public fun lock(
        name: String,
        owner: Owner? = null,
        lease: Duration? = null,
        maxHold: Duration? = null,
    ): Lock {
        val options = options(owner, lease, maxHold)
        return Lock(native.lock(name.toNative("the name of a lock"), options))
    }

    /**
     * The read-write lock [name], whose write side is the [lock] of that name; asks the store nothing.
     *
     * The options are those of [lock]. Whether the store has such locks is said by [capabilities].
     *
     * @throws FencelockException.InvalidArgument for the name or the owner
     */
    public fun rwLock(
        name: String,
        owner: Owner? = null,
        lease: Duration? = null,
        maxHold: Duration? = null,
    ): RwLock = RwLock(native.rwLock(name.toNative("the name of a lock"), options(owner, lease, maxHold)))

    /**
     * The semaphore [name] with so many [permits], 1 to 1,000,000; asks the store nothing.
     *
     * With a [lease] (0.1 s to 7 days) what is taken is not renewed and comes back with its end; with
     * [maxHold] it is renewed for so long at most.
     *
     * @throws FencelockException.InvalidArgument for the name or the number
     */
    public fun semaphore(
        name: String,
        permits: Int,
        lease: Duration? = null,
        maxHold: Duration? = null,
    ): Semaphore {
        val count = permits.toNative("the number of permits")
        val text = name.toNative("the name of a semaphore")
        return Semaphore(native.semaphore(text, count, lease?.toNative("a lease"), maxHold?.toNative("maxHold")))
    }

    private fun options(owner: Owner?, lease: Duration?, maxHold: Duration?) =
        NativeLockOptions(owner?.native, lease?.toNative("a lease"), maxHold?.toNative("maxHold"))

    /**
     * Goes on with a hold by its [Hold.ticket], from wherever that was made.
     *
     * @throws FencelockException.NotHeld when that hold has ended
     * @throws FencelockException.InvalidArgument when the text is no ticket
     */
    public suspend fun attach(ticket: String): Hold = native.beginAttach(ticket.toNative("the ticket")).await()

    /** The state of a lock, for people; null when the store knows nothing of it. */
    public suspend fun inspect(name: String): LockInfo? =
        native.inspectAsync(name.toNative("the name of a lock"))

    /**
     * The names of at most [limit] locks that begin with [prefix].
     *
     * @throws FencelockException.InvalidArgument for a limit below 1
     */
    public suspend fun list(prefix: String = "", limit: Int = 1000): List<String> =
        native.listAsync(prefix.toNative("the prefix"), limit.toNative("the limit"))

    /**
     * Ends the holds on a lock that were seen under [token] (that of [inspect], or of a hold), whoever has
     * them, and none that came after it: so a break may be repeated. For operators: who held it is told,
     * but may be in the middle of a write.
     */
    public suspend fun breakLock(name: String, token: ULong): Broken =
        native.breakLockAsync(name.toNative("the name of a lock"), token)

    /**
     * Ends one hold of a lock or a semaphore, by the id and the [token] that [inspect] shows of it. The others
     * stay. As [breakLock] otherwise.
     *
     * @throws FencelockException.InvalidArgument for what is no hold's id
     */
    public suspend fun breakHold(name: String, token: ULong, hold: String): Broken =
        native.breakHoldAsync(name.toNative("the name of a lock"), token, hold.toNative("the id of a hold"))

    /** The store's time. */
    public suspend fun ping(): Instant = native.pingAsync()

    /** What was counted, in Prometheus' text format. */
    public fun metrics(): String = native.metrics()

    /**
     * Closes: waits end with [FencelockException.Closed], holds are told that they are lost and released
     * at the store, for which this blocks. Safe at any time, and to repeat. In a coroutine, [shutDown], which
     * also tells whether anything was lost.
     */
    override fun close() {
        atShutdown?.remove()
        native.shutDown()
    }

    /**
     * As [close], suspending instead of blocking. Gives whether all was released: nothing was held or
     * waited for, and the store has confirmed it.
     */
    public suspend fun shutDown(): Boolean {
        atShutdown?.remove()
        return native.shutDownAsync()
    }

    /**
     * Takes no new owners, waits until nothing is held and nobody waits, for at most [limit], then
     * closes; at once when that is zero or below. Gives whether all was released in time; the client is
     * closed either way.
     */
    public suspend fun drain(limit: Duration): Boolean {
        atShutdown?.remove()
        return native.drainAsync(limit.toNative())
    }

    override fun toString(): String = "Client($id)"

    public companion object {
        init {
            // The one thread that calls us stays attached to the virtual machine, which need not wait
            // for it at its end.
            val attached = CallbackThreadInitializer(true, false, "fencelock-callbacks")
            Native.setCallbackThreadInitializer(uniffiRustFutureContinuationCallbackImpl, attached)
        }

        /**
         * Connects to the store of a URL (`redis://host`, `zk://host`, `sqlite:file`, `memory:name`), and
         * returns when it has answered. Cancelling gives the connection up.
         *
         * @param lease of holds without one of their own (30 s), renewed in the background
         * @param claim lease of a hold that was handed over, until its holder is heard from (3 s)
         * @param requestTimeout how long a request may go unanswered (3 s)
         * @param connectTimeout how long connecting may take
         * @param label shown beside the client's id wherever holders are listed
         * @param keyPrefix Redis: what every key begins with
         * @param localRunGrants how many times in a row a lock may pass within the client while others
         *   wait (64)
         * @param localRunTime for how long it may (10 ms)
         * @param maxWaiters how many acquires may wait at a time
         * @param shutdownGrace for how long the virtual machine's shutdown leaves a client alone that holds
         *   or waits for something, which serves as ever meanwhile; then it is closed. Null: what is held at
         *   the end stays locked until its lease is over
         * @throws FencelockException.InvalidArgument for the URL or an option
         * @throws FencelockException.Unavailable when the store does not answer
         * @throws FencelockException.Misconfigured when it refuses
         */
        public suspend fun connect(
            url: String,
            lease: Duration? = null,
            claim: Duration? = null,
            requestTimeout: Duration? = null,
            connectTimeout: Duration? = null,
            label: String? = null,
            keyPrefix: String? = null,
            localRunGrants: Int? = null,
            localRunTime: Duration? = null,
            maxWaiters: Int? = null,
            shutdownGrace: Duration? = 10.seconds,
        ): Client {
            val options =
                NativeConnectOptions(
                    lease?.toNative("lease"),
                    claim?.toNative("claim"),
                    requestTimeout?.toNative("requestTimeout"),
                    connectTimeout?.toNative("connectTimeout"),
                    label?.toNative("label"),
                    keyPrefix?.toNative("keyPrefix"),
                    localRunGrants?.toNative("localRunGrants"),
                    localRunTime?.toNative("localRunTime"),
                    maxWaiters?.toNative("maxWaiters"),
                )
            return beginConnect(url.toNative("the URL"), options).use { connecting ->
                connecting.ended()
                Client(connecting.client(), shutdownGrace)
            }
        }
    }
}
