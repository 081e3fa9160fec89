"""A semaphore, for tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencelock import _native
from fencelock._taken import Taken
from fencelock.aio import _port
from fencelock.aio.lock import Lock
from fencelock.errors import ContendedError, TimedOutError
from fencelock.semaphore import not_held

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine
    from types import TracebackType

    from fencelock.aio.hold import Hold, Holding

__all__ = ["Semaphore"]


class Semaphore:
    """An `asyncio.BoundedSemaphore` across machines: so many permits, taken and given back.

    From `Client.semaphore`. One object may be used by many tasks, and all objects of one client
    that have the same name are the same semaphore. For the rules see `fencelock.Semaphore`.

    >>> import asyncio
    >>> from fencelock import aio
    >>> async def main():
    ...     async with await aio.connect("memory:") as client:
    ...         mailers = client.semaphore("mailers", 3)
    ...         async with mailers:
    ...             free = await mailers.available_permits()
    ...         await mailers.acquire(permits=3)
    ...         more = await mailers.acquire(blocking=False)
    ...         await mailers.release()
    ...         return free, more
    >>> asyncio.run(main())
    (2, False)
    """

    __slots__ = (
        "__weakref__",
        "_adopt",
        "_client",
        "_entered",
        "_one",
        "_options",
        "_permits",
        "_taken",
    )

    def __init__(
        self,
        client: _native.Client,
        name: str,
        permits: int,
        adopt: bool,
        taken: Taken[Hold],
        options: dict[str, Any],
    ) -> None:
        """Not for users: see `Client.semaphore`."""
        self._client = client
        self._permits = permits
        self._adopt = adopt
        self._options = options
        self._one = self._lock(name, 1)
        self._taken = taken
        self._entered: Taken[Hold] = Taken()

    @property
    def name(self) -> str:
        """The semaphore's name."""
        return self._one.name

    @property
    def permits(self) -> int:
        """How many permits it has, as `Client.semaphore` was told."""
        return self._permits

    @_port.begun_by_its_caller
    def acquire(
        self, blocking: bool = True, timeout: float | None = None, permits: int = 1
    ) -> Coroutine[Any, Any, bool]:
        """Take permits, all of them at once; gives whether they were taken.

        Waits as long as it takes, or for `timeout` seconds, or with `blocking=False` not at all. A
        timeout of -1, None or infinity is none. A task that is cancelled meanwhile, at whichever
        moment, leaves nothing behind. For the errors see `fencelock.Semaphore.acquire`.
        """
        return self._acquire(_port.caller(), blocking, timeout, permits)

    def release(self) -> Awaitable[None]:
        """Give back what this task's latest `acquire` took, or else the latest of any task.

        The release begins with the call, and goes on if what it gives is not awaited. For the
        errors see `fencelock.Semaphore.release`.
        """
        hold = self._taken.take(_port.caller() or 0)
        if hold is None:
            raise not_held(self.name)
        return hold.release()

    @_port.begun_by_its_caller
    def hold(
        self, blocking: bool = True, timeout: float | None = None, permits: int = 1
    ) -> Holding:
        """Take permits and give the hold: `async with semaphore.hold(permits=2) as hold`.

        For the errors see `fencelock.Semaphore.hold`.
        """
        return self._taking(permits).hold(blocking, timeout)

    async def available_permits(self) -> int:
        """Ask the store how many permits are free: for display, never to decide."""
        port = _port.here()
        numbers = (self._permits, self._adopt)
        started = self._client.available_permits_start(port.box, self.name, *numbers)
        if type(started) is _native.Operation:
            started = await port.wait(started)
        return int(started)

    async def resize(self, permits: int) -> bool:
        """Give the semaphore another number of permits, while some are out or waited for.

        False when nobody holds or waits. For the rules and errors see `fencelock.Semaphore.resize`.
        A task that is cancelled meanwhile may have resized it.
        """
        port = _port.here()
        started = self._client.resize_start(port.box, self.name, permits)
        if type(started) is _native.Operation:
            started = await port.wait(started)
        return bool(started)

    async def __aenter__(self) -> Hold:
        """Take a permit and give the hold."""
        hold = await self._one.hold()
        hold.enter()
        self._entered.put(_port.caller() or 0, hold)
        return hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give it back. Raises `LostError` when it was lost and the body raised nothing."""
        hold = self._entered.leave(_port.caller() or 0)
        if hold is None:
            raise not_held(self.name)
        await hold.leave(kind, error, traceback)

    def __repr__(self) -> str:
        """Show the name and the number of permits."""
        return f"<fencelock.aio.Semaphore {self.name!r} permits={self._permits} at {id(self):#x}>"

    async def _acquire(
        self, caller: int | None, blocking: bool, timeout: float | None, permits: int
    ) -> bool:
        try:
            hold = await self._taking(permits).hold(blocking, timeout)
        except (ContendedError, TimedOutError):
            return False
        self._taken.put((_port.caller() if caller is None else caller) or 0, hold)
        return True

    def _taking(self, count: int) -> Lock:
        return self._one if count == 1 else self._lock(self.name, count)

    def _lock(self, name: str, count: int) -> Lock:
        numbers = (count, self._permits, self._adopt)
        return Lock(self._client, name, mode=numbers, reentrant=False, **self._options)
