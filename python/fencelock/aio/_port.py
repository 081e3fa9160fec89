"""How completions reach a loop: one mailbox for each, read when its descriptor is readable."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from fencelock import _native, _process
from fencelock._ends import Reader, abandon, settle
from fencelock.aio._guard import Guard, TaskGuard

if TYPE_CHECKING:
    from collections.abc import Awaitable

_F = TypeVar("_F", bound=Callable[..., Any])

# Numbers of tasks; greenlets count elsewhere, in the same way, but never in the same process.
_owners = itertools.count(1)
_numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


class Port:
    """The mailbox of one loop."""

    box: _native.Mailbox
    polite: bool = False
    """Whether a call that could wait gives way and can be cancelled although it need not wait."""

    async def before(self) -> None:
        """Raise if the task is cancelled."""
        raise NotImplementedError

    async def after(self) -> None:
        """Let others run."""
        raise NotImplementedError

    async def wait(self, operation: _native.Operation) -> Any:
        """Wait for an operation; a cancelled wait leaves nothing behind."""
        raise NotImplementedError

    def later(self, operation: _native.Operation) -> Awaitable[Any]:
        """Give something to await that need not be awaited for the operation to go on."""
        raise NotImplementedError

    def watch(self, operation: _native.Operation, callback: Callable[[Any], object]) -> None:
        """Call back, in the loop, with the operation's result."""
        raise NotImplementedError

    def owner(self) -> int:
        """Give the number of the running task."""
        raise NotImplementedError

    def guard(self, hold: _native.BaseHold) -> Guard:
        """Give what cancels the running task when the hold is lost."""
        raise NotImplementedError


def numbered(task: Any) -> int:
    """Give a task's number, which no other task ever has."""
    try:
        number: int = task._fencelock_owner
    except AttributeError:
        number = next(_owners)
        try:
            task._fencelock_owner = number
        except AttributeError:
            # Trio's tasks, for one, take no attributes.
            number = _numbers.setdefault(task, number)
    return number


class Ended:
    """What an operation that has ended already gives to be awaited."""

    __slots__ = ("_result",)

    def __init__(self, result: Any = None) -> None:
        self._result = result

    def __await__(self) -> Any:
        return self._result
        yield  # pragma: no cover - makes it a generator


class AsyncioPort(Port):
    """The port of an asyncio loop, uvloop's included; the loop has it as an attribute."""

    __slots__ = ("born", "box", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.born = _born
        self.box = _native.Mailbox()
        try:
            loop.add_reader(self.box.fileno(), Reader(self.box))
        except NotImplementedError:
            # A loop without readers is told by a thread. The reader has closed its mailbox.
            self.box = _native.Mailbox()
            relay = threading.Thread(
                target=_relay,
                args=(self.box, weakref.ref(loop)),
                name="fencelock-relay",
                daemon=True,
            )
            relay.start()

    async def wait(self, operation: _native.Operation) -> Any:
        future = self.loop.create_future()
        operation.bind(future)
        try:
            return await future
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                abandon(future.result())
            else:
                operation.cancel()
            raise

    def later(self, operation: _native.Operation) -> Awaitable[Any]:
        future = self.loop.create_future()
        operation.bind(future)
        return future

    def watch(self, operation: _native.Operation, callback: Callable[[Any], object]) -> None:
        operation.bind(_Watcher(lambda result: self.loop.call_soon(callback, result)))

    def owner(self) -> int:
        task = asyncio.current_task()
        if task is None:
            text = "a lock's owner is the task, and no task is running: call this in a coroutine"
            raise RuntimeError(text)
        return numbered(task)

    def guard(self, hold: _native.BaseHold) -> Guard:
        return TaskGuard(self, hold)


class _Watcher:
    """Stands where an operation expects a future, and schedules a callback instead."""

    __slots__ = ("_schedule",)

    def __init__(self, schedule: Callable[[Any], object]) -> None:
        self._schedule = schedule

    def done(self) -> bool:
        return False

    def set_result(self, result: Any) -> None:
        self._schedule(result)

    def set_exception(self, error: BaseException) -> None:
        pass


def _relay(box: _native.Mailbox, of: weakref.ref[asyncio.AbstractEventLoop]) -> None:
    """Tell a loop that cannot watch descriptors what has arrived, until it is closed."""
    settled = threading.Event()

    def drain() -> None:
        settle(box)
        settled.set()

    while True:
        arrived = box.wait(1.0)
        loop = of()
        if loop is None or loop.is_closed():
            box.close()
            return
        if arrived:
            settled.clear()
            # Closed meanwhile: seen above.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(drain)
        del loop
        if arrived:
            settled.wait(1.0)


# What a forked child inherits is its parent's.
_born = object()
# Of loops that take no attributes.
_ports: weakref.WeakKeyDictionary[Any, AsyncioPort] = weakref.WeakKeyDictionary()


def _forget() -> None:
    global _born
    _born = object()


_process.in_child(_forget)


def begun_by_its_caller(function: _F) -> _F:
    """Mark a function that gives a coroutine, so that it is known for a coroutine function."""
    mark = getattr(inspect, "markcoroutinefunction", None)
    if mark is not None:
        mark(function)
    else:
        function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]
    return function


def caller() -> int | None:
    """Give the number of the task that runs now; None outside of tasks."""
    if "trio" in sys.modules:
        from fencelock.aio import _trio

        number = _trio.caller()
        if number is not None:
            return number
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return None
    return None if task is None else numbered(task)


def here() -> Port:
    """Give the port of the running loop.

    Raises:
        RuntimeError: No loop is running in this thread.
    """
    # First: trio may be a guest of an asyncio loop.
    if "trio" in sys.modules:
        from fencelock.aio import _trio

        port = _trio.here()
        if port is not None:
            return port
    loop = asyncio.get_running_loop()
    try:
        known: AsyncioPort | None = loop._fencelock_port  # type: ignore[attr-defined]
    except AttributeError:
        known = _ports.get(loop)
    if known is None or known.born is not _born:
        known = AsyncioPort(loop)
        try:
            loop._fencelock_port = known  # type: ignore[attr-defined]
        except AttributeError:
            _ports[loop] = known
    return known
