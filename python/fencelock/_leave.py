"""The end of a `with` whose release failed."""

from __future__ import annotations

import logging

from fencelock.errors import FencelockError, LostError, UnavailableError

_log = logging.getLogger("fencelock")


def leave(failed: FencelockError, body: BaseException | None, raise_on_lost: bool) -> None:
    """Raise what the caller must know.

    What the body raised comes first; the loss of the hold is added to it as a note. A release that
    the store did not confirm goes on in the background, so it is a line in the log.
    """
    if isinstance(failed, UnavailableError):
        _log.warning("leaving a lock: %s", failed)
        return
    if body is not None:
        if hasattr(body, "add_note"):
            body.add_note(f"besides: {failed}")
        return
    if isinstance(failed, LostError) and not raise_on_lost:
        return
    raise failed
