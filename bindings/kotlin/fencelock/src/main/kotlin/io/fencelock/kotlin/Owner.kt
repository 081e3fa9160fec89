package io.fencelock.kotlin

import java.util.concurrent.atomic.AtomicLong

/**
 * Who acquires: all who show the same owner hold the lock together, each with a hold of its own, and enter it
 * without waiting. Branches that run in parallel under one owner do not exclude each other.
 */
public class Owner private constructor(internal val native: NativeOwner, private val text: String) {
    override fun equals(other: Any?): Boolean = other is Owner && other.native == native

    override fun hashCode(): Int = native.hashCode()

    override fun toString(): String = "Owner($text)"

    public companion object {
        private val next = AtomicLong()

        /** One within this program: a coroutine, or a task with its children. */
        public fun create(): Owner {
            val number = next.incrementAndGet()
            return Owner(NativeOwner.Local(number.toULong()), "$number here")
        }

        /**
         * One that travels: whoever shows the same text, in any process or language. 1 to 256 bytes without
         * control characters; [Client.lock] checks it.
         *
         * @throws FencelockException.InvalidArgument for a text with half of a surrogate pair
         */
        public fun of(id: String): Owner = Owner(NativeOwner.Explicit(id.toNative("the owner")), id)
    }
}
