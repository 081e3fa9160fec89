"""A lock, for tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencelock import _native
from fencelock._stack import Stack
from fencelock.aio import _port
from fencelock.aio.hold import Hold
from fencelock.errors import ContendedError, InvalidArgumentError, TimedOutError

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType

__all__ = ["Lock"]


class Lock(_native.BaseLock):
    """An `asyncio.Lock` across machines, re-entrant for its task unless `reentrant=False`.

    From `Client.lock`. One object may be used by many tasks.

    >>> import asyncio
    >>> from fencelock import aio
    >>> async def main():
    ...     async with await aio.connect("memory:") as client:
    ...         lock = client.lock("cache/rebuild")
    ...         async with lock as hold:
    ...             return await lock.locked(), hold.valid
    >>> asyncio.run(main())
    (True, True)
    """

    _stack: Stack[Hold]
    _cancel_on_lost: bool

    def __new__(
        cls, client: _native.Client, name: str, *, cancel_on_lost: bool = False, **options: Any
    ) -> Lock:
        """Not for users: see `Client.lock`."""
        lock = super().__new__(cls, client, name, **options)
        if cancel_on_lost and not lock.raise_on_lost:
            text = "a task that is cancelled by the loss must be told: raise_on_lost has to be True"
            raise InvalidArgumentError(text)
        lock._stack = Stack()
        lock._cancel_on_lost = cancel_on_lost
        return lock

    async def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock; gives whether it was acquired.

        Waits as long as it takes, or for `timeout` seconds, or with `blocking=False` not at all.
        A task that is cancelled meanwhile, at whichever moment, leaves nothing behind.

        Raises:
            UnavailableError: The store could not be asked within the timeout. Without a timeout an
                outage is waited out.
            InvalidArgumentError: The arguments contradict each other.
        """
        port = _port.here()
        owner = port.owner() if self.per_owner else 0
        try:
            hold = await self._acquire(port, owner, blocking, timeout)
        except (ContendedError, TimedOutError):
            return False
        self._stack.push(owner, hold)
        return True

    def release(self) -> Awaitable[None]:
        """Release the latest hold that this task has through this object.

        The release begins with the call, and goes on if what it gives is not awaited.

        Raises:
            NotHeldError: There is none (a `RuntimeError`, as for `asyncio.Lock`).
            LostError: The hold had ended before: what was done under it may have overlapped.
            UnavailableError: The store did not answer; the release goes on in the background.
        """
        return self._stack.pop(self._owner(), self).release()

    async def hold(self, blocking: bool = True, timeout: float = -1) -> Hold:
        """Acquire the lock and give the hold, which an `async with` releases.

        Raises:
            ContendedError: With `blocking=False`, when another has the lock.
            TimedOutError: Others had it for `timeout` seconds.
            UnavailableError: As `acquire`.
        """
        port = _port.here()
        owner = port.owner() if self.per_owner else 0
        return await self._acquire(port, owner, blocking, timeout)

    async def locked(self) -> bool:
        """Ask the store whether anybody, on any machine, holds the lock.

        Good for display, never for a decision: it may have changed when the answer arrives.
        """
        port = _port.here()
        started = self.locked_start(port.box)
        if type(started) is _native.Operation:
            started = await port.wait(started)
        return bool(started)

    @property
    def current(self) -> Hold | None:
        """The latest hold that this task has through this object."""
        return self._stack.top(self._owner())

    @property
    def count(self) -> int:
        """How many holds this task has through this object."""
        return self._stack.count(self._owner())

    async def __aenter__(self) -> Hold:
        """Acquire the lock and give the hold."""
        port = _port.here()
        owner = port.owner() if self.per_owner else 0
        hold = await self._acquire(port, owner, True, -1)
        hold.enter()
        self._stack.push(owner, hold)
        return hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock. Raises `LostError` when it was lost and the body raised nothing."""
        await self._stack.pop(self._owner(), self).leave(kind, error, traceback)

    def __repr__(self) -> str:
        """Show the name and whether it is held through this object."""
        state = "locked" if self._stack else "unlocked"
        return f"<fencelock.aio.Lock {self.name!r} object at {id(self):#x} [{state}]>"

    def _owner(self) -> int:
        return _port.here().owner() if self.per_owner else 0

    async def _acquire(
        self,
        port: _port.Port,
        owner: int,
        blocking: bool,
        timeout: float,
    ) -> Hold:
        started = self.acquire_start(port.box, owner, blocking, timeout)
        if type(started) is _native.Operation:
            started = await port.wait(started)
        hold = Hold(started, self.raise_on_lost)
        if self._cancel_on_lost:
            hold.cancel_on_lost = True
        return hold
