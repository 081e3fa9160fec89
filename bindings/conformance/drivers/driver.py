"""The driver of Python's threads: says what `fencelock` says. See ../README.md for the protocol."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Callable

import fencelock

clients: dict[str, fencelock.Client] = {}
holds: dict[str, fencelock.Hold] = {}
speaking = threading.Lock()


def say(event: str, tag: str, **fields: object) -> None:
    """Say one thing, in one piece."""
    more = "".join(f" {key}={value}" for key, value in fields.items())
    with speaking:
        print(time.monotonic_ns(), time.time_ns(), event, tag + more, flush=True)


def failed(event: str, tag: str, error: fencelock.FencelockError) -> None:
    """Say what went wrong."""
    say(event, tag, kind=error.kind, why=str(error).replace(" ", "_"))


def trust(hold: fencelock.Hold) -> dict[str, object]:
    """Give how far a hold is trusted, by a clock that was read before."""
    now = time.monotonic_ns()
    return {"until": now + int(hold.remaining * 1e9), "valid": str(hold.valid).lower()}


def seconds(text: str) -> float:
    """Read `500ms`."""
    return int(text.removesuffix("ms")) / 1000


def acquire(tag: str, make: Callable[[], fencelock.Hold]) -> None:
    """Acquire, and say what came of it."""
    try:
        hold = make()
    except fencelock.FencelockError as error:
        failed("failed", tag, error)
        return
    holds[tag] = hold
    abandoned = {True: "yes", False: "no", None: "unknown"}[hold.previous_abandoned]
    fields = {"lock": hold.name, "token": hold.token, "abandoned": abandoned}
    say("granted", tag, **fields, reentry=str(hold.reentry).lower(), **trust(hold))
    hold.on_lost(lambda reason: say("lost", tag, reason=reason))


def lock(client: fencelock.Client, name: str, options: dict[str, str]) -> Callable[[], Any]:
    """Give what acquires as the options say."""
    lease = seconds(options["lease"]) if "lease" in options else None
    owner = options.get("owner")
    made = client.lock(name, lease=lease, owner=owner, reentrant=owner is not None)
    match options.get("wait", "forever"):
        case "try":
            return lambda: made.hold(blocking=False)
        case "forever":
            return made.hold
        case limit:
            return lambda: made.hold(timeout=seconds(limit))


def obey(verb: str, tag: str, words: list[str]) -> None:
    """Do one thing."""
    options = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        match verb:
            case "open":
                clients[tag] = fencelock.connect(words[0])
                # A thread that waits hears nothing but signals.
                say("opened", tag, id=clients[tag].id, lacks="cancel")
            case "acquire":
                acquire(tag, lambda: lock(clients[words[0]], words[1], options)())
            case "attach":
                acquire(tag, lambda: clients[words[0]].attach(words[1]))
            case "look":
                say("seen", tag, **trust(holds[tag]))
            case "ticket":
                say("ticket", tag, text=holds[tag].ticket())
            case "release":
                hold = holds.pop(tag)
                say("release-asked", tag, **trust(hold))
                hold.release()
                say("released", tag)
            case "close":
                clients[tag].close()
                say("closed", tag)
    except fencelock.FencelockError as error:
        failed({"open": "refused", "release": "unreleased"}.get(verb, "failed"), tag, error)
    except KeyError:
        pass  # It is over.


for line in sys.stdin:
    verb, tag, *words = line.split()
    if verb in {"acquire", "attach"}:
        say("asked", tag, client=words[0], lock=words[1], **dict(it.split("=", 1) for it in words[2:]))
    threading.Thread(target=obey, args=(verb, tag, words), daemon=True).start()
