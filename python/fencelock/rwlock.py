"""A lock that readers share, for threads."""

from __future__ import annotations

from typing import Generic, TypeVar

from fencelock import _native

__all__ = ["RWLock"]

_L = TypeVar("_L", bound=_native.BaseLock)


class Sides(Generic[_L]):
    """What the read-write locks of threads and of tasks have in common."""

    __slots__ = ("__weakref__", "_reader", "_writer")

    def __init__(self, reader: _L, writer: _L) -> None:
        """Not for users: see `Client.rwlock`."""
        self._reader = reader
        self._writer = writer

    @property
    def name(self) -> str:
        """The lock's name."""
        return self._writer.name

    @property
    def reader_lock(self) -> _L:
        """The side that reads: any number may have it together, while nobody writes."""
        return self._reader

    @property
    def writer_lock(self) -> _L:
        """The side that writes, one at a time: the same lock as `Client.lock(name)`."""
        return self._writer

    def __repr__(self) -> str:
        """Show both sides."""
        kind = f"{type(self).__module__.removesuffix('.rwlock')}.RWLock"
        return f"<{kind} reader_lock={self._reader!r} writer_lock={self._writer!r}>"


class RWLock(Sides[_native.Lock]):
    """A read-write lock across machines: any number of readers, or one writer.

    From `Client.rwlock`. Each side is a `Lock` with all that this has. Readers and writers wait in
    one queue, first come, first served. Readers of one client share a hold at the store, and each
    is told of its loss.

    Who writes may read and write again, who reads may read again, at once. Who reads and asks to
    write would wait for its own read: that raises `WouldDeadlockError`.

    >>> import fencelock
    >>> client = fencelock.connect("memory:")
    >>> prices = client.rwlock("prices")
    >>> with prices.reader_lock as read:
    ...     read.valid, prices.writer_lock.locked()
    (True, True)
    >>> with prices.writer_lock as written:
    ...     written.token > read.token
    True
    """

    __slots__ = ()
