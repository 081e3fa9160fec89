"""A lock that readers share, for tasks."""

from __future__ import annotations

from fencelock.aio.lock import Lock
from fencelock.rwlock import Sides

__all__ = ["RWLock"]


class RWLock(Sides[Lock]):
    """A read-write lock across machines, for tasks: any number of readers, or one writer.

    From `Client.rwlock`. Each side is a `Lock` with all that this has; for the rules see
    `fencelock.RWLock`.

    >>> import asyncio
    >>> from fencelock import aio
    >>> async def main():
    ...     async with await aio.connect("memory:") as client:
    ...         prices = client.rwlock("prices")
    ...         async with prices.reader_lock as read:
    ...             pass
    ...         async with prices.writer_lock as written:
    ...             return written.token > read.token
    >>> asyncio.run(main())
    True
    """

    __slots__ = ()
