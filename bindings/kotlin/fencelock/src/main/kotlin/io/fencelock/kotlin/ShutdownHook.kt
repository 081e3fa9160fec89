package io.fencelock.kotlin

import java.lang.ref.WeakReference
import kotlin.time.Duration
import kotlin.time.TimeSource

/**
 * Lets a client live on when the virtual machine shuts down, for as long as others need it, and then closes
 * it. An idle one is left open: other hooks run beside this one, and may lock still.
 */
internal class ShutdownHook private constructor(private val thread: Thread) {
    fun remove() {
        try {
            Runtime.getRuntime().removeShutdownHook(thread)
        } catch (_: IllegalStateException) {
            // It is running, or about to.
        }
    }

    /** Goes when nobody can reach the client any more. */
    fun leaveWith(client: Client) {
        collected.register(client, ::remove)
    }

    companion object {
        private const val LOOK_MILLIS = 5L

        /** Null when the virtual machine is shutting down already. The client is not kept by it. */
        fun add(native: NativeClient, grace: Duration): ShutdownHook? {
            val reference = WeakReference(native)
            val thread =
                Thread({ reference.get()?.let { letGo(it, grace) } }, "fencelock-shutdown")
            return try {
                Runtime.getRuntime().addShutdownHook(thread)
                ShutdownHook(thread)
            } catch (_: IllegalStateException) {
                null
            }
        }

        private fun letGo(native: NativeClient, grace: Duration) {
            val began = TimeSource.Monotonic.markNow()
            while (!native.isShutDown() && !native.isIdle()) {
                if (began.elapsedNow() >= grace) {
                    native.shutDown()
                    return
                }
                Thread.sleep(LOOK_MILLIS)
            }
        }
    }
}
