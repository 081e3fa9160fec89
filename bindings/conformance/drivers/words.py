"""What both drivers of Python say, and how: see ../README.md for the protocol."""

from __future__ import annotations

import threading
import time
from typing import Any

from fencelock import FencelockError, Hold, aio

speaking = threading.Lock()


def say(event: str, tag: str, **fields: object) -> None:
    """Say one thing, in one piece."""
    more = "".join(f" {key}={value}" for key, value in fields.items())
    with speaking:
        print(time.monotonic_ns(), time.time_ns(), event, tag + more, flush=True)


def failed(verb: str, tag: str, error: FencelockError) -> None:
    """Say what went wrong."""
    unconverted = {"downgrade": "unconverted", "upgrade": "unconverted"}
    event = {"open": "refused", "release": "unreleased", **unconverted}.get(verb, "failed")
    say(event, tag, kind=error.kind, why=str(error).replace(" ", "_"))


def trust(hold: Hold | aio.Hold) -> dict[str, object]:
    """Give how far a hold is trusted, by a clock that was read before."""
    now = time.monotonic_ns()
    return {"until": now + int(hold.remaining * 1e9), "valid": str(hold.valid).lower()}


def granted(tag: str, hold: Hold | aio.Hold) -> None:
    """Say that the lock is held."""
    abandoned = {True: "yes", False: "no", None: "unknown"}[hold.previous_abandoned]
    fields = {"lock": hold.name, "token": hold.token, "abandoned": abandoned}
    say("granted", tag, **fields, reentry=str(hold.reentry).lower(), **trust(hold))


def options(words: list[str]) -> dict[str, str]:
    """Read `key=value`, as far as words are so."""
    return dict(word.split("=", 1) for word in words if "=" in word)


def asked(tag: str, words: list[str]) -> None:
    """Say that an acquisition begins."""
    say("asked", tag, client=words[0], lock=words[1], **options(words[2:]))


def how(given: dict[str, str]) -> dict[str, object]:
    """Give the arguments of `hold`."""
    match given.get("wait", "forever"):
        case "try":
            return {"blocking": False}
        case "forever":
            return {}
        case "endless":
            return {"timeout": float("inf")}
        case limit:
            return {"timeout": seconds(limit)}


def begun(client: Any, name: str, given: dict[str, str]) -> Any:
    """Acquire as the options say, of either kind of client."""
    owner = given.get("owner")
    lock = {"owner": owner, "reentrant": owner is not None}
    lease = {"lease": seconds(given["lease"])} if "lease" in given else {}
    match given.get("mode", "").replace("/", ":").split(":"):
        case ["permits", count, of]:
            semaphore = client.semaphore(name, int(of), adopt="adopt" in given, **lease)
            return semaphore.hold(**how(given), permits=int(count))
        case ["shared"]:
            return client.rwlock(name, **lease, **lock).reader_lock.hold(**how(given))
        case _:
            return client.lock(name, **lease, **lock).hold(**how(given))


def drain(words: list[str]) -> dict[str, float]:
    """Give the arguments of `close`."""
    limit = options(words).get("drain")
    if limit is None:
        return {}
    return {"drain": float("inf") if limit == "endless" else seconds(limit)}


NAMES = {"empty": "", "nul": "a\0b", "long": "x" * 513, "half": "half \ud83d"}


def seconds(text: str) -> float:
    """Read `500ms`."""
    return int(text.removesuffix("ms")) / 1000
