package io.fencelock.kotlin

/** Which kind of error it is; [ErrorKind.value] is its number, the same in every language. */
public val FencelockException.kind: ErrorKind
    get() =
        when (this) {
            is FencelockException.Contended -> ErrorKind.CONTENDED
            is FencelockException.TimedOut -> ErrorKind.TIMED_OUT
            is FencelockException.Cancelled -> ErrorKind.CANCELLED
            is FencelockException.Unavailable -> ErrorKind.UNAVAILABLE
            is FencelockException.Lost -> ErrorKind.LOST
            is FencelockException.NotHeld -> ErrorKind.NOT_HELD
            is FencelockException.Misconfigured -> ErrorKind.MISCONFIGURED
            is FencelockException.InvalidArgument -> ErrorKind.INVALID_ARGUMENT
            is FencelockException.Unsupported -> ErrorKind.UNSUPPORTED
            is FencelockException.Closed -> ErrorKind.CLOSED
            is FencelockException.WouldDeadlock -> ErrorKind.WOULD_DEADLOCK
            is FencelockException.Internal -> ErrorKind.INTERNAL
        }

/** Its number, the same in every language. */
public val FencelockException.code: Int
    get() = errorFacts(kind).code.toInt()

/** Whether the same call may succeed later without anybody changing anything. */
public val FencelockException.isRetryable: Boolean
    get() = errorFacts(kind).retryable
