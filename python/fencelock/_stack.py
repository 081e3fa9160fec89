"""What is held of a lock, by thread or task, whichever of its objects it was acquired through."""

from __future__ import annotations

import threading
import weakref
from typing import Generic, Protocol, TypeVar

from fencelock import _native


class Stackable(Protocol):
    """What a hold says of itself."""

    @property
    def released(self) -> bool:
        """Whether its release has begun."""

    @property
    def entered(self) -> bool:
        """Whether the end of a `with` needs it, although it is released."""


_H = TypeVar("_H", bound=Stackable)


class Stack(Generic[_H]):
    """The holds by `acquire` and `with` of one lock, by owner, the latest last."""

    __slots__ = ("__weakref__", "_holds", "_home")

    def __init__(self, home: Stacks[_H]) -> None:
        self._home = home
        self._holds: dict[int, list[_H]] = {}

    def push(self, owner: int, hold: _H) -> None:
        """Add the hold of an acquire."""
        self._holds.setdefault(owner, []).append(hold)
        self._home.busy.add(self)

    def take(self, owner: int, lock: _native.BaseLock) -> _H:
        """Give the latest hold of `lock` to be released; raises `NotHeldError` if there is none."""
        hold = self.top(owner)
        if hold is None:
            raise lock.not_held()
        if not hold.entered:
            self._holds[owner].remove(hold)
            self._present(owner)
        return hold

    def leave(self, owner: int) -> _H | None:
        """Take out what the innermost `with` entered; it may have been released within."""
        holds = self._present(owner)
        hold = holds.pop() if holds else None
        self._present(owner)
        return hold

    def top(self, owner: int) -> _H | None:
        """Give the latest hold."""
        held = [hold for hold in self._present(owner) if not hold.released]
        return held[-1] if held else None

    def count(self, owner: int) -> int:
        """How many holds there are of this owner."""
        return sum(not hold.released for hold in self._present(owner))

    def __bool__(self) -> bool:
        """Whether anything is held."""
        return any(self.count(owner) for owner in tuple(self._holds))

    def _present(self, owner: int) -> list[_H]:
        """Give the owner's holds, without those that were released by themselves."""
        holds = self._holds.get(owner)
        if holds is None:
            return []
        if any(hold.released and not hold.entered for hold in holds):
            holds[:] = [hold for hold in holds if hold.entered or not hold.released]
        if not holds:
            del self._holds[owner]
            if not self._holds:
                self._home.busy.discard(self)
        return holds


class Stacks(Generic[_H]):
    """The stacks of a client's locks: all objects of one lock share one.

    What was acquired and not released stays when the object is collected, as with
    `threading.RLock`: `client.lock(name).acquire()` needs no variable.
    """

    __slots__ = ("_known", "_making", "busy")

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._known: weakref.WeakValueDictionary[object, Stack[_H]] = weakref.WeakValueDictionary()
        self.busy: set[Stack[_H]] = set()

    def of(self, name: str, owner: str | None, per_owner: bool, mode: str) -> Stack[_H]:
        """Give the stack of a lock: of its name, the kind of its owner, and how it is taken."""
        key = (name, owner, per_owner, mode)
        with self._making:
            stack = self._known.get(key)
            if stack is None:
                stack = self._known[key] = Stack(self)
            return stack
