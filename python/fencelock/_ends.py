"""Handing the ends of operations to what waits for them."""

from __future__ import annotations

from fencelock import _native

# How often a look goes on with what arrived meanwhile, before the loop has its turn.
TURNS = 64


def settle(box: _native.Mailbox, woken: bool = False) -> None:
    """Give every end that has arrived, and those that follow from them, to what waits.

    What waits has the methods `done`, `set_result` and `set_exception` of an `asyncio.Future`.
    `woken` says that the mailbox's descriptor was readable.
    """
    failed: BaseException | None = None
    for _ in range(TURNS):
        ends = box.take(woken)
        if not ends:
            break
        woken = False
        for waits, result, error in ends:
            # One that fails does not keep the others from their ends.
            try:
                if waits.done():
                    # Cancelled meanwhile.
                    abandon(result)
                elif error is None:
                    waits.set_result(result)
                else:
                    waits.set_exception(error)
            except BaseException as raised:  # noqa: BLE001 - whatever a loop's future raises
                failed = raised
    else:
        box.wake()
    if failed is not None:
        raise failed


class Reader:
    """What a loop calls when a mailbox has something, and lets go of when the loop is closed.

    That is how the loop's end is seen: what still waits for the mailbox is cancelled then.
    """

    __slots__ = ("__weakref__", "_box")

    def __init__(self, box: _native.Mailbox) -> None:
        self._box = box

    def __call__(self) -> None:
        """Hand out what has arrived."""
        settle(self._box, True)

    def __del__(self) -> None:
        """Nobody will look again."""
        self._box.close()


def abandon(result: object) -> None:
    """Give a result back for which nobody waits any more."""
    if isinstance(result, _native.BaseHold):
        result.abandon()


def release(hold: _native.BaseHold, box: _native.Mailbox) -> object:
    """Begin the release of a hold; gives an operation, or None when it is done.

    The next one may wait in the same loop: it is told here, without waking the loop.
    """
    hushed = box.hush()
    try:
        return hold.release_start(box)
    finally:
        if not hushed:
            settle(box)
