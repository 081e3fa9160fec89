"""Distributed locks with fencing tokens, fair hand-off and watchdogs.

`connect` gives a `Client` of a store, `Client.lock` a `Lock`, which is a `threading.RLock` across
machines, `Client.rwlock` one that readers share, `Client.semaphore` a `threading.BoundedSemaphore`;
`fencelock.aio` has the same names for tasks.

>>> import fencelock
>>> with fencelock.connect("memory:") as client:
...     with client.lock("stock/coupon-7") as hold:
...         print(hold.valid, hold.token > 0)
True True
"""

from __future__ import annotations

from fencelock import _built

try:
    from fencelock import _native
except ImportError as _error:
    if "_native" not in str(_error) or _built.native():
        raise
    raise ImportError(_built.MISSING) from None

if not _native.in_main_interpreter():
    _text = (
        "fencelock cannot be used in a sub-interpreter: its clients and holds belong to the "
        "process. Import it in the main interpreter (mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
    )
    raise ImportError(_text)

from fencelock._native import Broken, Capabilities, Hold, HoldInfo, Lock, LockInfo, Lost, WaiterInfo
from fencelock.client import Client, connect, shared
from fencelock.errors import (
    AcquireCancelledError,
    ClosedError,
    ContendedError,
    FencelockError,
    InvalidArgumentError,
    LostError,
    MisconfiguredError,
    NotHeldError,
    TimedOutError,
    UnavailableError,
    UnsupportedError,
    WouldDeadlockError,
)
from fencelock.rwlock import RWLock
from fencelock.semaphore import Semaphore

__version__ = _native.__version__

__all__ = [
    "AcquireCancelledError",
    "Broken",
    "Capabilities",
    "Client",
    "ClosedError",
    "ContendedError",
    "FencelockError",
    "Hold",
    "HoldInfo",
    "InvalidArgumentError",
    "Lock",
    "LockInfo",
    "Lost",
    "LostError",
    "MisconfiguredError",
    "NotHeldError",
    "RWLock",
    "Semaphore",
    "TimedOutError",
    "UnavailableError",
    "UnsupportedError",
    "WaiterInfo",
    "WouldDeadlockError",
    "__version__",
    "connect",
    "shared",
]
