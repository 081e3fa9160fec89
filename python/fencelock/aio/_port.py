"""How completions reach a loop: one mailbox for each, read when its descriptor is readable."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable

from fencelock import _native, _process
from fencelock.aio._guard import Guard, TaskGuard

if TYPE_CHECKING:
    from collections.abc import Awaitable

# Numbers of tasks; greenlets count elsewhere, in the same way, but never in the same process.
_owners = itertools.count(1)
_numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


class Port:
    """The mailbox of one loop."""

    box: _native.Mailbox

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


def abandon(result: Any) -> None:
    """Give a result back for which nobody waits any more."""
    if isinstance(result, _native.BaseHold):
        result.abandon()


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
    """The port of an asyncio loop, uvloop's included."""

    __slots__ = ("box", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.box = _native.Mailbox()
        try:
            loop.add_reader(self.box.fileno(), self.box.drain)
        except NotImplementedError:
            # A loop without readers is told by a thread.
            threading.Thread(target=self._relay, name="fencelock-relay", daemon=True).start()

    def _relay(self) -> None:
        try:
            while True:
                self.box.wait(None)
                done = threading.Event()

                def drain(done: threading.Event = done) -> None:
                    self.box.drain()
                    done.set()

                self.loop.call_soon_threadsafe(drain)
                while not done.wait(1.0):
                    if self.loop.is_closed():
                        return
        except RuntimeError:
            self.box.close()  # The loop is closed.

    def close(self) -> None:
        """Give the descriptor up, after the loop's end."""
        self.box.close()

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


class _Local(threading.local):
    port: AsyncioPort | None = None
    """Of the loop that ran last in this thread."""

    def __init__(self) -> None:
        self.ports: list[AsyncioPort] = []


_local = _Local()


def _forget() -> None:
    global _local
    _local = _Local()


_process.in_child(_forget)


def here() -> Port:
    """Give the port of the running loop.

    Raises:
        RuntimeError: No loop is running in this thread.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        if "trio" in sys.modules:
            from fencelock.aio import _trio

            port = _trio.here()
            if port is not None:
                return port
        raise
    known = _local.port
    if known is not None and known.loop is loop:
        return known
    return _asyncio_port(loop)


def _asyncio_port(loop: asyncio.AbstractEventLoop) -> AsyncioPort:
    for port in [port for port in _local.ports if port.loop.is_closed()]:
        port.close()
        _local.ports.remove(port)
    found = next((port for port in _local.ports if port.loop is loop), None)
    if found is None:
        found = AsyncioPort(loop)
        _local.ports.append(found)
    _local.port = found
    return found
