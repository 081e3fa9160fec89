"""The holds that a lock object has for each thread or task."""

from __future__ import annotations

from typing import Generic, TypeVar

from fencelock import _native

_H = TypeVar("_H", bound=_native.BaseHold)


class Stack(Generic[_H]):
    """What is held through a lock object, by owner, the latest last."""

    __slots__ = ("_holds",)

    def __init__(self) -> None:
        self._holds: dict[int, list[_H]] = {}

    def push(self, owner: int, hold: _H) -> None:
        """Add the hold of an acquire."""
        holds = self._holds.get(owner)
        if holds is None:
            self._holds[owner] = [hold]
        else:
            holds.append(hold)

    def pop(self, owner: int, lock: _native.BaseLock) -> _H:
        """Take the latest hold of `lock` out; raises `NotHeldError` if there is none."""
        holds = self._holds.get(owner)
        if not holds:
            raise lock.not_held()
        hold = holds.pop()
        if not holds:
            del self._holds[owner]
        return hold

    def top(self, owner: int) -> _H | None:
        """Give the latest hold."""
        holds = self._holds.get(owner)
        return holds[-1] if holds else None

    def count(self, owner: int) -> int:
        """How many holds there are of this owner."""
        return len(self._holds.get(owner, ()))

    def __bool__(self) -> bool:
        """Whether anything is held."""
        return bool(self._holds)
