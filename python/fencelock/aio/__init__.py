"""Distributed locks for tasks: the names of `fencelock`, with `await` and `async with`.

Works under asyncio (with uvloop too) and trio, and so under anyio. The owner of a lock is the task.
A wait costs no thread, and a task that is cancelled while it waits neither holds the lock nor
stands in its queue afterwards.

>>> import asyncio
>>> from fencelock import aio
>>> async def main():
...     async with await aio.connect("memory:") as client:
...         async with client.lock("stock/coupon-7") as hold:
...             return hold.valid
>>> asyncio.run(main())
True
"""

from __future__ import annotations

from fencelock.aio.client import Client, connect
from fencelock.aio.hold import Hold, Lost
from fencelock.aio.lock import Lock
from fencelock.aio.rwlock import RWLock
from fencelock.aio.semaphore import Semaphore

__all__ = ["Client", "Hold", "Lock", "Lost", "RWLock", "Semaphore", "connect"]
