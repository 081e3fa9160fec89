"""Distributed locks with fencing tokens, fair hand-off and watchdogs.

`connect` gives a `Client` of a store, `Client.lock` a `Lock`, which is a `threading.RLock` across
machines; `fencelock.aio` has the same names for tasks.

>>> import fencelock
>>> with fencelock.connect("memory:") as client:
...     with client.lock("stock/coupon-7") as hold:
...         print(hold.valid, hold.token > 0)
True True
"""

from __future__ import annotations

from fencelock import _native

if not _native.in_main_interpreter():
    _text = (
        "fencelock cannot be used in a sub-interpreter: its clients and holds belong to the "
        "process. Import it in the main interpreter (mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
    )
    raise ImportError(_text)

from fencelock._native import Capabilities, Hold, HoldInfo, Lock, LockInfo, Lost, WaiterInfo
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
)

__version__ = _native.__version__

__all__ = [
    "AcquireCancelledError",
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
    "TimedOutError",
    "UnavailableError",
    "UnsupportedError",
    "WaiterInfo",
    "__version__",
    "connect",
    "shared",
]
