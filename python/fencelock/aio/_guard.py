"""Cancelling the task whose lock was lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fencelock import _native

if TYPE_CHECKING:
    from types import TracebackType

    from fencelock.aio._port import Port


class Guard:
    """Watches a hold for the task that runs now."""

    def __init__(self, port: Port, hold: _native.BaseHold) -> None:
        self.fired = False
        self.active = True
        started = hold.lost_start(port.box)
        if type(started) is _native.Operation:
            port.watch(started, self._lose)
        else:
            self._lose(started)

    def _lose(self, reason: str | None) -> None:
        if self.active and reason is not None:
            self.fired = True
            self.cancel()

    def cancel(self) -> None:
        """Cancel the task."""
        raise NotImplementedError

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> BaseException | None:
        """Stop watching. Gives what the body raised, unless that was this guard's own cancel."""
        raise NotImplementedError


class TaskGuard(Guard):
    """The guard of an asyncio task."""

    def __init__(self, port: Port, hold: _native.BaseHold) -> None:
        self._task = asyncio.current_task()
        super().__init__(port, hold)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> BaseException | None:
        self.active = False
        if not self.fired:
            return error
        if error is None:
            # The body ended before the cancel arrived: it arrives here.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as late:
                return self._other(late)
            return None
        return self._other(error)

    def _other(self, error: BaseException) -> BaseException | None:
        uncancel = getattr(self._task, "uncancel", None)
        others = uncancel() if uncancel is not None else 0
        # Cancelled by somebody else as well: then the task ends in that.
        return error if others > 0 or not isinstance(error, asyncio.CancelledError) else None
