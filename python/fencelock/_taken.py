"""What is out of a semaphore, for who takes permits and gives them back without a hold."""

from __future__ import annotations

import threading
import weakref
from typing import Generic, Protocol, TypeVar

from fencelock import _process


class Releasable(Protocol):
    """What a hold says of itself."""

    @property
    def released(self) -> bool:
        """Whether its release has begun."""


_H = TypeVar("_H", bound=Releasable)

# One for all: it is held for the change of a list. A forked child has its own.
_mutex = threading.Lock()


def _forget() -> None:
    global _mutex
    _mutex = threading.Lock()


_process.in_child(_forget)


class Taken(Generic[_H]):
    """The holds by `acquire` of one semaphore, with who acquired them, the latest last."""

    __slots__ = ("__weakref__", "_holds", "_home")

    def __init__(self, home: Home[_H] | None = None) -> None:
        self._home = home
        self._holds: list[tuple[int, _H]] = []

    def put(self, who: int, hold: _H) -> None:
        """Keep a hold that `who` acquired."""
        with _mutex:
            self._holds.append((who, hold))
            if self._home is not None:
                self._home.busy.add(self)

    def take(self, who: int) -> _H | None:
        """Give the latest hold of `who`, or else of anybody; None when there is none."""
        with _mutex:
            # Those that were released by themselves are not there to be given back.
            self._holds = [entry for entry in self._holds if not entry[1].released]
            return self._latest(who)

    def leave(self, who: int) -> _H | None:
        """Give what the innermost `with` of `who` took, though it was released within.

        A `with` may end in another thread than it began in: then the latest of anybody.
        """
        with _mutex:
            return self._latest(who)

    def _latest(self, who: int) -> _H | None:
        own = [entry for entry in self._holds if entry[0] == who]
        latest = (own or self._holds)[-1:]
        self._holds = [entry for entry in self._holds if entry not in latest]
        if self._home is not None and not self._holds:
            self._home.busy.discard(self)
        return latest[0][1] if latest else None


class Home(Generic[_H]):
    """What is out of a client's semaphores: all objects of one name share it.

    What was acquired and not released stays when the object is collected.
    """

    __slots__ = ("_known", "busy")

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[str, Taken[_H]] = weakref.WeakValueDictionary()
        self.busy: set[Taken[_H]] = set()

    def of(self, name: str) -> Taken[_H]:
        """Give what is out of a semaphore."""
        with _mutex:
            taken = self._known.get(name)
            if taken is None:
                taken = self._known[name] = Taken(self)
            return taken
