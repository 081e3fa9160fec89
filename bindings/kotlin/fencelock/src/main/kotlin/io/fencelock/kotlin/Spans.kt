package io.fencelock.kotlin

import java.nio.charset.StandardCharsets
import kotlin.time.Duration
import kotlin.time.toJavaDuration

/** A span as the generated code wants it. */
internal fun Duration.toNative(what: String): java.time.Duration {
    if (isNegative()) throw FencelockException.InvalidArgument("$what cannot be negative: $this")
    return toJavaDuration()
}

/** How long to wait: not at all when that is zero or below, as with `withTimeout`. */
internal fun Duration.toNative(): java.time.Duration = coerceAtLeast(Duration.ZERO).toJavaDuration()

/** A text as the generated code wants it: a lone surrogate has no UTF-8, and is refused. */
internal fun String.toNative(what: String): String {
    if (!StandardCharsets.UTF_8.newEncoder().canEncode(this)) {
        throw FencelockException.InvalidArgument("$what is no valid text: it has half of a surrogate pair in it")
    }
    return this
}

/** A count as the generated code wants it. */
internal fun Int.toNative(what: String): UInt {
    if (this < 0) throw FencelockException.InvalidArgument("$what cannot be negative: $this")
    return toUInt()
}
