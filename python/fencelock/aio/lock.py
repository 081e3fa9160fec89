"""A lock, for tasks."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from fencelock import _native
from fencelock._leave import leave
from fencelock._stack import Stacks
from fencelock.aio import _port
from fencelock.aio.hold import Hold, Holding
from fencelock.errors import ContendedError, InvalidArgumentError, NotHeldError, TimedOutError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine
    from types import TracebackType

    from fencelock._stack import Stack

__all__ = ["Lock"]


class Lock(_native.BaseLock):
    """An `asyncio.Lock` across machines, re-entrant for its task unless `reentrant=False`.

    From `Client.lock`. One object may be used by many tasks, and all objects of one client that
    have the same name and kind of owner are the same lock: what one acquires another releases, and
    what was acquired stays held when its object is collected. A side of a `RWLock` is one, too.

    >>> import asyncio
    >>> from fencelock import aio
    >>> async def main():
    ...     async with await aio.connect("memory:") as client:
    ...         lock = client.lock("cache/rebuild")
    ...         async with lock as hold:
    ...             return lock.locked(), hold.valid
    >>> asyncio.run(main())
    (True, True)
    """

    _stack: Stack[Hold]
    _cancel_on_lost: bool

    def __new__(
        cls,
        client: _native.Client,
        name: str,
        *,
        stacks: Stacks[Hold] | None = None,
        cancel_on_lost: bool = False,
        **options: Any,
    ) -> Lock:
        """Not for users: see `Client.lock`."""
        lock = super().__new__(cls, client, name, **options)
        if cancel_on_lost and not lock.raise_on_lost:
            text = "a task that is cancelled by the loss must be told: raise_on_lost has to be True"
            raise InvalidArgumentError(text)
        home = stacks or Stacks()
        lock._stack = home.of(name, options.get("owner"), lock.per_owner, lock.mode)
        lock._cancel_on_lost = cancel_on_lost
        return lock

    @_port.begun_by_its_caller
    def acquire(
        self, blocking: bool = True, timeout: float | None = -1
    ) -> Coroutine[Any, Any, bool]:
        """Acquire the lock; gives whether it was acquired.

        Waits as long as it takes, or for `timeout` seconds, or with `blocking=False` not at all. A
        timeout of -1, None or infinity is none.
        A task that is cancelled meanwhile, at whichever moment, leaves nothing behind.

        The owner is the task that calls this, whichever task runs it: `asyncio.wait_for` and
        `gather` may make one of their own.

        Raises:
            UnavailableError: The store could not be asked within the timeout. Without a timeout an
                outage is waited out.
            WouldDeadlockError: The owner reads the lock already, and this would wait for it to end.
            InvalidArgumentError: The arguments contradict each other, or the timeout is negative.
        """
        return self._acquire(self._caller(), blocking, timeout)

    def release(self) -> Awaitable[None]:
        """Release the latest hold that this task has by `acquire` or `async with`.

        The release begins with the call, and goes on if what it gives is not awaited.

        Raises:
            NotHeldError: There is none (a `RuntimeError`, as for `asyncio.Lock`).
            LostError: The hold had ended before: what was done under it may have overlapped.
            UnavailableError: The store did not answer; the release goes on in the background.
        """
        return self._stack.take(self._owner(), self).release()

    @_port.begun_by_its_caller
    def hold(self, blocking: bool = True, timeout: float | None = -1) -> Holding:
        """Acquire the lock and give the hold: `async with lock.hold(timeout=5) as hold`.

        The owner is the task that calls this.

        Raises:
            ContendedError: With `blocking=False`, when another has the lock.
            TimedOutError: Others had it for `timeout` seconds.
            UnavailableError: As `acquire`.
        """
        return Holding(self._hold(self._caller(), blocking, timeout))

    def locked(self) -> bool:
        """Return whether anybody holds the lock through this client, as far as it knows.

        Asks nobody, as `asyncio.Lock.locked`; another client's hold is not seen: for that there is
        `locked_anywhere`.
        """
        return self.is_held()

    async def locked_anywhere(self) -> bool:
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
        """The latest hold that this task has by `acquire` or `async with`; None without one."""
        return self._stack.top(self._owner())

    @property
    def count(self) -> int:
        """How many holds this task has by `acquire` or `async with`."""
        return self._stack.count(self._owner())

    @_port.begun_by_its_caller
    def __aenter__(self) -> Coroutine[Any, Any, Hold]:
        """Acquire the lock and give the hold."""
        return self._enter(self._caller())

    @_port.begun_by_its_caller
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Coroutine[Any, Any, None]:
        """Release the lock. Raises `LostError` when it was lost and the body raised nothing.

        And `NotHeldError` when it was released within, as for `threading.RLock`.
        """
        return self._leave(self._caller(), kind, error, traceback)

    def __repr__(self) -> str:
        """Show the name and whether it is held through this object."""
        state = "locked" if self._stack else "unlocked"
        side = " to read" if self.mode == "shared" else ""
        return f"<fencelock.aio.Lock {self.name!r}{side} object at {id(self):#x} [{state}]>"

    def _owner(self) -> int:
        return _port.here().owner() if self.per_owner else 0

    def _caller(self) -> int | None:
        return _port.caller() if self.per_owner else 0

    async def _acquire(self, caller: int | None, blocking: bool, timeout: float | None) -> bool:
        owner = self._owner() if caller is None else caller
        try:
            hold = await self._hold(owner, blocking, timeout)
        except (ContendedError, TimedOutError):
            return False
        self._stack.push(owner, hold)
        return True

    async def _enter(self, caller: int | None) -> Hold:
        owner = self._owner() if caller is None else caller
        hold = await self._hold(owner, True, -1)
        hold.enter()
        self._stack.push(owner, hold)
        return hold

    async def _leave(
        self,
        caller: int | None,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        owner = self._owner() if caller is None else caller
        hold = self._stack.leave(owner)
        if hold is not None:
            entered = not hold.released
            await hold.leave(kind, error, traceback)
            if entered:
                return
        # Released within: as with `threading.RLock`, an outer level is left instead.
        try:
            outer = self._stack.take(owner, self)
        except NotHeldError as failed:
            leave(failed, error, self.raise_on_lost)
        else:
            await outer.give_back(error)

    async def _hold(self, caller: int | None, blocking: bool, timeout: float | None) -> Hold:
        owner = self._owner() if caller is None else caller
        port = _port.here()
        if port.polite:
            await port.before()
        started = self.acquire_start(port.box, owner, blocking, timeout)
        if type(started) is _native.Operation:
            started = await port.wait(started)
        elif port.polite:
            await port.after()
        hold = Hold(started, self.raise_on_lost)
        if self._cancel_on_lost:
            hold.cancel_on_lost = True
        return hold


if sys.version_info < (3, 10):

    def _loop(_lock: Lock) -> asyncio.AbstractEventLoop:
        """Give what `asyncio.Condition` asks of a lock there."""
        return asyncio.get_event_loop()

    Lock._loop = property(_loop)  # type: ignore[attr-defined]
