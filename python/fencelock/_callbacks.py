"""The thread on which the callbacks of threads' holds run, one after the other."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable

from fencelock import _native, _process
from fencelock._ends import settle


class Call:
    """Stands where an operation expects a future, and calls back instead."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[Any], object]) -> None:
        self._callback = callback

    def done(self) -> bool:
        """Whether the result is not wanted: it always is."""
        return False

    def set_result(self, result: Any) -> None:
        """Call back. What it raises is shown as what ended a thread, and goes no further.

        That goes for `SystemExit` too: whoever drains the mailbox has other callbacks to call.
        """
        try:
            self._callback(result)
        except BaseException:  # noqa: BLE001 - whatever a user's callback raises
            _show()

    def set_exception(self, error: BaseException) -> None:
        """Take note of nothing: what was watched for can no longer happen."""


def _show() -> None:
    """Show what is being handled as what ended a thread; `SystemExit` is nothing to show."""
    try:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), None)))
    except BaseException:  # noqa: BLE001 - whatever a user's hook raises
        # As `threading` does.
        sys.excepthook(*sys.exc_info())


class _Worker:
    """A thread that drains a mailbox."""

    def __init__(self) -> None:
        self.box = _native.Mailbox()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="fencelock-callbacks", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended:
            self.box.wait(None)
            settle(self.box)

    def end(self) -> None:
        """Let the thread end. A callback that is running gets a second for it."""
        self._ended = True
        self.box.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(1.0)


_worker: _Worker | None = None
_making = threading.Lock()


def box() -> _native.Mailbox:
    """Give the mailbox of the thread, which is started when it is first wanted."""
    global _worker
    with _making:
        if _worker is None:
            _worker = _Worker()
        return _worker.box


def _end() -> None:
    if _worker is not None:
        _worker.end()


def _forget() -> None:
    global _worker, _making
    _worker = None
    _making = threading.Lock()


_process.at_end(_end)
_process.in_child(_forget)


def on_lost(self: _native.Hold, callback: Callable[[str], object]) -> None:
    """Call `callback(reason)` once when the hold is lost; at once, on this thread, when it is.

    It runs on a thread of Fencelock's, one callback after the other. What it raises goes to
    `threading.excepthook`. For the reasons see `Lost.reason`.
    """
    _watch(self.lost_start, lambda reason: None if reason is None else callback(reason))


def on_wanted(self: _native.Hold, callback: Callable[[], object]) -> None:
    """Call `callback()` once when another client waits for the lock.

    A holder that can pause its work may then release, and acquire again.
    """
    _watch(self.wanted_start, lambda word: None if word is None else callback())


# These call a user's code, under which no frame of Rust may lie: see `fencelock._ends`.
_native.Hold.on_lost = on_lost  # type: ignore[method-assign]
_native.Hold.on_wanted = on_wanted  # type: ignore[method-assign]


def _watch(start: Callable[[_native.Mailbox], Any], callback: Callable[[Any], object]) -> None:
    started = start(box())
    if type(started) is _native.Operation:
        started.bind(Call(callback))
    else:
        # On the caller's own thread, which may be asked to end.
        try:
            callback(started)
        except Exception:  # noqa: BLE001 - whatever a user's callback raises
            _show()
