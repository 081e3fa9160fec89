"""A hold, for tasks."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Callable

from fencelock import _ends, _native
from fencelock._leave import leave
from fencelock.aio import _port
from fencelock.errors import FencelockError, LostError, NotHeldError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator
    from datetime import timedelta
    from types import TracebackType

    from fencelock.aio._guard import Guard

__all__ = ["Hold", "Lost"]


class Lost(_native.Lost):
    """The event that a hold was lost, with the methods of `asyncio.Event`.

    >>> import asyncio
    >>> from fencelock import aio
    >>> async def main():
    ...     async with await aio.connect("memory:") as client:
    ...         hold = await client.lock("report", lease=0.1).hold()
    ...         return await hold.lost.wait(), hold.lost.reason
    >>> asyncio.run(main())
    (True, 'ended')
    """

    async def wait(self) -> bool:  # type: ignore[override]
        """Wait until the hold is lost; False when it is released, since then it cannot be."""
        port = _port.here()
        started = self.lost_start(port.box)
        if type(started) is _native.Operation:
            started = await port.wait(started)
        return started is not None


class Hold(_native.BaseHold):
    """A held lock. Leaving its `async with` releases it, and so does its garbage collection.

    >>> import asyncio
    >>> from fencelock import aio
    >>> async def main():
    ...     async with await aio.connect("memory:") as client:
    ...         async with await client.lock("account/17").hold(timeout=5) as hold:
    ...             return hold.check() == hold.token
    >>> asyncio.run(main())
    True
    """

    cancel_on_lost: bool = False
    _guard: Guard | None = None

    def release(self) -> Awaitable[None]:
        """Release the lock; what it gives is done when the store, or the next holder, has it.

        The release begins with the call, and goes on if it is not awaited.

        Raises:
            LostError: The hold had ended before.
            NotHeldError: It was released before.
            UnavailableError: The store did not answer; the release goes on in the background.
        """
        port = _port.here()
        started = _ends.release(self, port.box)
        return port.later(started) if type(started) is _native.Operation else _DONE

    async def extend(self, lease: float | timedelta) -> None:
        """Set the hold's lease to `lease` (seconds or `timedelta`) from now on; never shortens it.

        Raises:
            LostError: The hold has ended.
            InvalidArgumentError: The lease lies outside 0.1 s to 7 days.
            UnavailableError: The store did not answer; the lease may or may not be longer.
        """
        port = _port.here()
        started = self.extend_start(port.box, lease)
        if type(started) is _native.Operation:
            await port.wait(started)

    async def downgrade(self) -> None:
        """Read from now on instead of writing, without letting a writer come between.

        See `fencelock.Hold.downgrade`. Once begun, it is not undone by a cancel.
        """
        port = _port.here()
        started = self.downgrade_start(port.box)
        if type(started) is _native.Operation:
            await port.wait(started)

    async def try_upgrade(self) -> None:
        """Write from now on instead of reading, if nobody else holds the lock.

        See `fencelock.Hold.try_upgrade`. A task that is cancelled meanwhile goes on reading, unless
        the answer was there already: `mode` tells.
        """
        port = _port.here()
        started = self.try_upgrade_start(port.box)
        if type(started) is _native.Operation:
            await port.wait(started)

    @property
    def lost(self) -> Lost:
        """The event that the hold was lost."""
        return Lost(self)

    def on_lost(self, callback: Callable[[str], object]) -> None:
        """Call `callback(reason)` in the loop when the hold is lost; soon when it is already."""
        self._watch(self.lost_start, callback)

    def on_wanted(self, callback: Callable[[], object]) -> None:
        """Call `callback()` in the loop when another client waits for the lock."""
        self._watch(self.wanted_start, lambda _word: callback())

    @staticmethod
    def _watch(start: Callable[[_native.Mailbox], Any], callback: Callable[[Any], object]) -> None:
        port = _port.here()

        def tell(result: Any) -> None:
            if result is not None:
                callback(result)

        started = start(port.box)
        if type(started) is _native.Operation:
            port.watch(started, tell)
        else:
            tell(started)

    async def __aenter__(self) -> Hold:
        """Give the hold itself."""
        self.enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock. Raises `LostError` when it was lost and the body raised nothing."""
        await self.leave(kind, error, traceback)

    @property
    def entered(self) -> bool:
        """Whether the end of an `async with` has something to end."""
        return self._guard is not None

    def enter(self) -> None:
        """Begin the body of an `async with`, which is watched over if the lock asked for it."""
        if self.cancel_on_lost and self._guard is None:
            self._guard = _port.here().guard(self)

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release at the end of an `async with`."""
        guard = self._guard
        if guard is None:
            await self.give_back(error)
            return
        self._guard = None
        left = await guard.leave(kind, error, traceback)
        try:
            await self.give_back(left)
        except LostError as lost:
            if error is not None:
                raise lost from error
            raise
        if error is None and left is not None:
            # A cancel by somebody else, which arrived in the guard.
            raise left

    async def give_back(self, error: BaseException | None) -> None:
        """Release after a body that raised `error`."""
        try:
            port = _port.here()
            started = _ends.release(self, port.box)
            if type(started) is _native.Operation:
                await port.wait(started)
        except NotHeldError:
            # Released within the body.
            pass
        except FencelockError as failed:
            leave(failed, error, self.raise_on_lost)


class Holding(Coroutine[Any, Any, Hold]):
    """A hold to come, from `Lock.hold`: for `await`, or for `async with`, which releases it."""

    __slots__ = ("_call", "_hold")

    def __init__(self, call: Coroutine[Any, Any, Hold]) -> None:
        """Not for users: see `Lock.hold`."""
        self._call = call
        self._hold: Hold | None = None

    def __await__(self) -> Generator[Any, Any, Hold]:
        """Wait for the hold."""
        return self._call.__await__()

    def send(self, value: Any) -> Any:
        """Go on, as a task's step."""
        return self._call.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an exception, as a task's step."""
        return self._call.throw(*error)

    def close(self) -> None:
        """Give it up."""
        self._call.close()

    async def __aenter__(self) -> Hold:
        """Wait for the hold."""
        self._hold = await self._call
        return await self._hold.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the hold, as its own `async with`."""
        if self._hold is not None:
            await self._hold.__aexit__(kind, error, traceback)


_DONE = _port.Ended()
