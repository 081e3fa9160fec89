"""What can go wrong: one class for each of Fencelock's codes, which are the same in every language.

>>> import fencelock
>>> issubclass(fencelock.UnavailableError, ConnectionError)
True
>>> fencelock.UnavailableError.code, fencelock.UnavailableError.retryable
(4, True)
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AcquireCancelledError",
    "ClosedError",
    "ContendedError",
    "FencelockError",
    "InvalidArgumentError",
    "LostError",
    "MisconfiguredError",
    "NotHeldError",
    "TimedOutError",
    "UnavailableError",
    "UnsupportedError",
    "WouldDeadlockError",
]


class FencelockError(Exception):
    """The base of all errors of Fencelock. The message says what happened, and what to do."""

    code: ClassVar[int] = 0
    """The fixed number of this kind of error, the same in every language; 0 for the base."""
    kind: ClassVar[str] = ""
    """The fixed name of this kind."""
    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without anybody changing anything."""


class ContendedError(FencelockError):
    """Another holder has the lock, or waits for it, and the caller did not want to wait."""

    code = 1
    kind = "contended"
    retryable = True


class TimedOutError(FencelockError, TimeoutError):
    """The wait's bound passed while others held the lock."""

    code = 2
    kind = "timed_out"
    retryable = True


class AcquireCancelledError(FencelockError):
    """The wait was cancelled through Fencelock itself. Tasks see `asyncio.CancelledError`."""

    code = 3
    kind = "cancelled"


class UnavailableError(FencelockError, ConnectionError):
    """The store could not be reached, or did not answer, within the call's bound."""

    code = 4
    kind = "unavailable"
    retryable = True


class LostError(FencelockError):
    """The hold ended before its holder released it: its lease ran out, or it was broken."""

    code = 5
    kind = "lost"


class NotHeldError(FencelockError, RuntimeError):
    """The caller does not hold the lock, or released it already."""

    code = 6
    kind = "not_held"


class MisconfiguredError(FencelockError):
    """The store refuses for a reason that only an operator can mend, such as a wrong password."""

    code = 7
    kind = "misconfigured"


class InvalidArgumentError(FencelockError, ValueError):
    """An argument is out of its range."""

    code = 8
    kind = "invalid_argument"


class UnsupportedError(FencelockError, NotImplementedError):
    """The store, or this version, cannot do what was asked."""

    code = 9
    kind = "unsupported"


class ClosedError(FencelockError, RuntimeError):
    """The client was closed, or belongs to the process that forked this one."""

    code = 10
    kind = "closed"


class WouldDeadlockError(FencelockError, RuntimeError):
    """The owner has the lock shared, and wants it for itself: it would wait for its own hold."""

    code = 11
    kind = "would_deadlock"


BY_CODE: dict[int, type[FencelockError]] = {
    error.code: error
    for error in (
        ContendedError,
        TimedOutError,
        AcquireCancelledError,
        UnavailableError,
        LostError,
        NotHeldError,
        MisconfiguredError,
        InvalidArgumentError,
        UnsupportedError,
        ClosedError,
        WouldDeadlockError,
    )
}
