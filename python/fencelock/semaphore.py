"""A semaphore, for threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fencelock import _gevent, _native
from fencelock._taken import Taken
from fencelock.errors import ContendedError, NotHeldError, TimedOutError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from fencelock._native import Hold, Lock

__all__ = ["Semaphore"]


def not_held(name: str) -> NotHeldError:
    """Make the error of a release too many."""
    return NotHeldError(f"cannot release the semaphore {name!r}: `acquire` has taken no permits")


class Semaphore(_native.BaseSemaphore):
    """A `threading.BoundedSemaphore` across machines: so many permits, taken and given back.

    From `Client.semaphore`. One object may be used by many threads, and all objects of one client
    that have the same name are the same semaphore. Who waits is served in the order of arrival, and
    a small request does not pass a larger one. Permits have no owner: a thread that acquires again
    takes more of them, and may wait for its own. Those of a process that died are free when their
    lease has ended.

    >>> import fencelock
    >>> client = fencelock.connect("memory:")
    >>> mailers = client.semaphore("mailers", 3)
    >>> with mailers:
    ...     mailers.available_permits()
    2
    >>> mailers.acquire(permits=3), mailers.acquire(blocking=False)
    (True, False)
    >>> mailers.release()
    >>> mailers.available_permits()
    3
    """

    __slots__ = ("_adopt", "_client", "_options", "_permits")

    _adopt: bool
    _client: _native.Client
    _options: dict[str, Any]
    _permits: int

    def __new__(
        cls,
        client: _native.Client,
        name: str,
        permits: int,
        adopt: bool,
        options: dict[str, Any],
    ) -> Self:
        """Not for users: see `Client.semaphore`."""
        one = _gevent.permits(client, name, (1, permits, adopt), options)
        self = super().__new__(cls, one)
        self._client = client
        self._permits = permits
        self._adopt = adopt
        self._options = options
        return self

    @property
    def permits(self) -> int:
        """How many permits it has, as `Client.semaphore` was told."""
        return self._permits

    def hold(self, blocking: bool = True, timeout: float | None = None, permits: int = 1) -> Hold:
        """Take permits and return the hold, which a `with` gives back.

        >>> import fencelock
        >>> client = fencelock.connect("memory:")
        >>> with client.semaphore("ports", 4).hold(timeout=5, permits=2) as hold:
        ...     hold.valid
        True

        Raises:
            ContendedError: With `blocking=False`, when too few are free, or others wait.
            TimedOutError: Too few were free for `timeout` seconds.
            InvalidArgumentError, ...: As `acquire`.
        """
        return self._taking(permits).hold(blocking, timeout)

    def available_permits(self) -> int:
        """Return how many permits are free, by the store's word: for display, never to decide.

        It may have changed when the answer arrives, and who waits comes first.

        Raises:
            UnavailableError: The store did not answer.
        """
        ask = self._client.available_permits
        return _gevent.run(ask, self.name, self._permits, self._adopt)

    def resize(self, permits: int) -> bool:
        """Give the semaphore another number of permits, while some are out or waited for.

        Of more, whoever fits enters at once. Of fewer, nobody loses any, and nobody enters until
        enough have come back; who waits for more than there are gets `InvalidArgumentError`. It is
        set and not added, and lasts until nobody holds or waits; False when nobody does, and the
        next to come says how many there are. This object keeps its own number: who comes from now
        on says the new one, or has `adopt=True`.

        Raises:
            InvalidArgumentError: `permits` is not 1 to 1,000,000.
            MisconfiguredError: The name is a lock's.
            UnsupportedError: The store cannot.
            UnavailableError: The store did not answer.

        >>> import fencelock
        >>> client = fencelock.connect("memory:")
        >>> one = client.semaphore("seats", 1)
        >>> one.acquire(), one.resize(2), client.semaphore("seats", 2).acquire()
        (True, True, True)
        """
        return _gevent.run(self._client.resize, self.name, permits)

    def __repr__(self) -> str:
        """Show the name and the number of permits."""
        return f"<fencelock.Semaphore {self.name!r} permits={self._permits} at {id(self):#x}>"

    def _taking(self, count: int) -> Lock:
        if count == 1:
            return self._one
        numbers = (count, self._permits, self._adopt)
        return _gevent.permits(self._client, self.name, numbers, self._options)


class Greenlets(Semaphore):
    """As `fencelock.Semaphore`, for greenlets."""

    __slots__ = ("_entered", "_taken")

    _entered: Taken[Hold]
    _taken: Taken[Hold]

    def share(self, taken: Taken[Hold]) -> Greenlets:
        """Take part in what is out of the semaphore."""
        self._taken = taken
        self._entered = Taken()
        return self

    def acquire(
        self, blocking: bool = True, timeout: float | None = None, permits: int = 1
    ) -> bool:
        """Take permits; see `fencelock.Semaphore.acquire`."""
        try:
            hold = self.hold(blocking, timeout, permits)
        except (ContendedError, TimedOutError):
            return False
        self._taken.put(threading.get_ident(), hold)
        return True

    def release(self) -> None:
        """Give back what this greenlet's latest `acquire` took, or else the latest of any."""
        hold = self._taken.take(threading.get_ident())
        if hold is None:
            raise not_held(self.name)
        hold.release()

    def __enter__(self) -> Hold:
        """Take a permit and give the hold."""
        hold = self._one.hold()
        self._entered.put(threading.get_ident(), hold)
        return hold

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give it back. Raises `LostError` when it was lost and the body raised nothing."""
        hold = self._entered.leave(threading.get_ident())
        if hold is None:
            raise not_held(self.name)
        hold.__exit__(kind, error, traceback)
