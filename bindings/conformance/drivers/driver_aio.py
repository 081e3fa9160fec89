"""The driver of Python's tasks: says what `fencelock.aio` says. See ../README.md for the protocol."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Awaitable

import fencelock
from fencelock import aio

clients: dict[str, aio.Client] = {}
holds: dict[str, aio.Hold] = {}
waits: dict[str, asyncio.Task[None]] = {}
tasks: set[asyncio.Task[None]] = set()


def say(event: str, tag: str, **fields: object) -> None:
    """Say one thing."""
    more = "".join(f" {key}={value}" for key, value in fields.items())
    print(time.monotonic_ns(), time.time_ns(), event, tag + more, flush=True)


def failed(event: str, tag: str, error: fencelock.FencelockError) -> None:
    """Say what went wrong."""
    say(event, tag, kind=error.kind, why=str(error).replace(" ", "_"))


def trust(hold: aio.Hold) -> dict[str, object]:
    """Give how far a hold is trusted, by a clock that was read before."""
    now = time.monotonic_ns()
    return {"until": now + int(hold.remaining * 1e9), "valid": str(hold.valid).lower()}


def seconds(text: str) -> float:
    """Read `500ms`."""
    return int(text.removesuffix("ms")) / 1000


def lock(client: aio.Client, name: str, options: dict[str, str]) -> Awaitable[aio.Hold]:
    """Acquire as the options say."""
    lease = seconds(options["lease"]) if "lease" in options else None
    owner = options.get("owner")
    made = client.lock(name, lease=lease, owner=owner, reentrant=owner is not None)
    match options.get("wait", "forever"):
        case "try":
            return made.hold(blocking=False)
        case "forever":
            return made.hold()
        case limit:
            return made.hold(timeout=seconds(limit))


async def acquire(tag: str, wait: Awaitable[aio.Hold]) -> None:
    """Acquire, and say what came of it."""
    try:
        hold = await wait
    except asyncio.CancelledError:
        say("failed", tag, kind="cancelled")
        return
    holds[tag] = hold
    abandoned = {True: "yes", False: "no", None: "unknown"}[hold.previous_abandoned]
    fields = {"lock": hold.name, "token": hold.token, "abandoned": abandoned}
    say("granted", tag, **fields, reentry=str(hold.reentry).lower(), **trust(hold))
    hold.on_lost(lambda reason: say("lost", tag, reason=reason))


async def obey(verb: str, tag: str, words: list[str]) -> None:
    """Do one thing."""
    options = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        match verb:
            case "open":
                clients[tag] = await aio.connect(words[0])
                say("opened", tag, id=clients[tag].id)
            case "acquire":
                await acquire(tag, lock(clients[words[0]], words[1], options))
            case "attach":
                await acquire(tag, clients[words[0]].attach(words[1]))
            case "cancel":
                waits[tag].cancel()
            case "look":
                say("seen", tag, **trust(holds[tag]))
            case "ticket":
                say("ticket", tag, text=holds[tag].ticket())
            case "release":
                hold = holds.pop(tag)
                say("release-asked", tag, **trust(hold))
                await hold.release()
                say("released", tag)
            case "close":
                await clients[tag].close()
                say("closed", tag)
    except fencelock.FencelockError as error:
        failed({"open": "refused", "release": "unreleased"}.get(verb, "failed"), tag, error)
    except KeyError:
        pass  # It is over.


async def main() -> None:
    """Read and obey until nobody tells us what to do any more."""
    lines = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    async for line in lines:
        verb, tag, *words = line.decode().split()
        if verb in {"acquire", "attach"}:
            options = dict(it.split("=", 1) for it in words[2:])
            say("asked", tag, client=words[0], lock=words[1], **options)
        task = asyncio.create_task(obey(verb, tag, words))
        tasks.add(task)
        if verb in {"acquire", "attach"}:
            waits[tag] = task
        task.add_done_callback(lambda task, tag=tag: (tasks.discard(task), waits.pop(tag, None)))


asyncio.run(main())
