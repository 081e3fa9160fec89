"""The port of a trio run."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable

import outcome
import trio

from fencelock import _native, _process
from fencelock._ends import settle
from fencelock.aio._guard import Guard
from fencelock.aio._port import Port, numbered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator
    from types import TracebackType


class _Waiter:
    """Stands where an operation expects a future."""

    __slots__ = ("outcome", "task")

    def __init__(self) -> None:
        self.task: Any = None
        self.outcome: outcome.Outcome[Any] | None = None

    def done(self) -> bool:
        return self.outcome is not None

    def set_result(self, result: Any) -> None:
        self._settle(outcome.Value(result))

    def set_exception(self, error: BaseException) -> None:
        self._settle(outcome.Error(error))

    def _settle(self, ended: outcome.Outcome[Any]) -> None:
        self.outcome = ended
        if self.task is not None:
            task, self.task = self.task, None
            trio.lowlevel.reschedule(task)


class _Later:
    __slots__ = ("_port", "_waiter")

    def __init__(self, port: TrioPort, waiter: _Waiter) -> None:
        self._port = port
        self._waiter = waiter

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._port.settled(self._waiter, None).__await__()


class TrioPort(Port):
    """The mailbox of a trio run, read by a system task."""

    # Trio's rule: every call that could wait is a checkpoint.
    polite = True

    async def before(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()

    async def after(self) -> None:
        await trio.lowlevel.cancel_shielded_checkpoint()

    def __init__(self) -> None:
        self.box = _native.Mailbox()
        trio.lowlevel.spawn_system_task(self._read, name="fencelock")

    async def _read(self) -> None:
        try:
            while True:
                await trio.lowlevel.wait_readable(self.box.fileno())
                settle(self.box, True)
        finally:
            self.box.close()

    async def wait(self, operation: _native.Operation) -> Any:
        waiter = _Waiter()
        operation.bind(waiter)
        return await self.settled(waiter, operation)

    async def settled(self, waiter: _Waiter, operation: _native.Operation | None) -> Any:
        """Wait until a waiter has its outcome."""
        if waiter.outcome is None:
            waiter.task = trio.lowlevel.current_task()

            def abort(_raise: Callable[[], None]) -> trio.lowlevel.Abort:
                waiter.task = None
                # A result that comes all the same is dropped, a hold thereby released.
                waiter.outcome = outcome.Error(RuntimeError("cancelled"))
                if operation is not None:
                    operation.cancel()
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        assert waiter.outcome is not None
        return waiter.outcome.unwrap()

    def later(self, operation: _native.Operation) -> Awaitable[Any]:
        waiter = _Waiter()
        operation.bind(waiter)
        return _Later(self, waiter)

    def watch(self, operation: _native.Operation, callback: Callable[[Any], object]) -> None:
        from fencelock._callbacks import Call

        operation.bind(Call(callback))

    def owner(self) -> int:
        return numbered(trio.lowlevel.current_task())

    def guard(self, hold: _native.BaseHold) -> Guard:
        return ScopeGuard(self, hold)


class ScopeGuard(Guard):
    """A cancel scope around the body."""

    def __init__(self, port: Port, hold: _native.BaseHold) -> None:
        self._scope = trio.CancelScope()
        self._scope.__enter__()
        super().__init__(port, hold)

    def cancel(self) -> None:
        self._scope.cancel()

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> BaseException | None:
        self.active = False
        # True when it took its own cancel out.
        return None if self._scope.__exit__(kind, error, traceback) else error


class _Local(threading.local):
    token: Any = None
    port: TrioPort | None = None


_local = _Local()


def _forget() -> None:
    global _local
    _local = _Local()


_process.in_child(_forget)


def caller() -> int | None:
    """Give the number of the trio task that runs now, if there is one."""
    try:
        return numbered(trio.lowlevel.current_task())
    except RuntimeError:
        return None


def here() -> TrioPort | None:
    """Give the port of the trio run in this thread, if one of its tasks runs now."""
    try:
        trio.lowlevel.current_task()
        token = trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None
    if _local.port is None or _local.token is not token:
        _local.token, _local.port = token, TrioPort()
    return _local.port


__all__ = ["TrioPort", "caller", "here"]
