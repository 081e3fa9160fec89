"""What follows the process: its end, and its forks."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable

from fencelock import _native
from fencelock._ends import settle

# For how long the end of the interpreter waits until stores have confirmed the releases.
LIMIT = 5.0

_clients: weakref.WeakSet[Any] = weakref.WeakSet()
_hooks: list[Callable[[], object]] = []
_ends: list[Callable[[], object]] = []


def in_child(hook: Callable[[], object]) -> None:
    """Call `hook` in every child made by fork from now on."""
    _hooks.append(hook)


def at_end(hook: Callable[[], object]) -> None:
    """Call `hook` when the interpreter ends, after the clients were closed."""
    _ends.append(hook)


def watch(client: Any) -> None:
    """Close `client` at the end of the interpreter."""
    _clients.add(client)
    # A child of multiprocessing ends without atexit.
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, close_all, exitpriority=0)


def close_all() -> None:
    """Close every client of this process, and wait no longer than the limit."""
    natives = [client._native for client in list(_clients)]
    _clients.clear()
    box = _native.Mailbox()
    started = [native.close_start(box) for native in natives if not native.closed]
    closing = [each for each in started if type(each) is _native.Operation]
    until = time.monotonic() + LIMIT
    while not all(operation.ended for operation in closing) and time.monotonic() < until:
        box.wait(until - time.monotonic())
        settle(box)


@atexit.register
def _end() -> None:
    close_all()
    for hook in _ends:
        hook()


def _child() -> None:
    # These are the parent's; what this process has begins empty.
    _clients.clear()
    _main()
    for hook in _hooks:
        hook()


def _main() -> None:
    _native.set_main_thread(threading.main_thread().ident or 0)


_main()
os.register_at_fork(after_in_child=_child)
