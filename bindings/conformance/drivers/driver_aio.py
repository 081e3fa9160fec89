"""The driver of Python's tasks: says what `fencelock.aio` says. See ../README.md for the protocol."""

from __future__ import annotations

import asyncio
import sys
from typing import Awaitable

import fencelock
from fencelock import aio
from words import NAMES, asked, begun, drain, failed, granted, options, say, trust

clients: dict[str, aio.Client] = {}
holds: dict[str, aio.Hold] = {}
waits: dict[str, asyncio.Task[None]] = {}
tasks: set[asyncio.Task[None]] = set()


async def acquire(tag: str, wait: Awaitable[aio.Hold]) -> None:
    """Acquire, and say what came of it."""
    try:
        hold = holds[tag] = await wait
    except asyncio.CancelledError:
        say("failed", tag, kind="cancelled")
        return
    granted(tag, hold)
    hold.on_lost(lambda reason: say("lost", tag, reason=reason))


async def relay(tag: str, lock: aio.Lock) -> None:
    """Begin an acquire here, await it elsewhere, and enter again here."""
    asked(tag, ["c", lock.name, f"caller={tag}"])
    begun_here = lock.hold()

    async def awaiting() -> None:
        await acquire(tag, begun_here)

    await asyncio.create_task(awaiting())
    again = f"{tag}-again"
    asked(again, ["c", lock.name, f"caller={tag}"])
    await acquire(again, lock.hold(blocking=False))


async def obey(verb: str, tag: str, words: list[str]) -> None:
    """Do one thing."""
    try:
        match verb:
            case "open":
                clients[tag] = await aio.connect(words[0])
                say("opened", tag, id=clients[tag].id, knows="modes,conversions,resize")
            case "acquire":
                await acquire(tag, begun(clients[words[0]], words[1], options(words)))
            case "attach":
                await acquire(tag, clients[words[0]].attach(words[1]))
            case "cancel":
                waits[tag].cancel()
            case "look":
                say("seen", tag, **trust(holds[tag]))
            case "ticket":
                say("ticket", tag, text=holds[tag].ticket())
            case "downgrade":
                say("downgrade-asked", tag, **trust(holds[tag]))
                await holds[tag].downgrade()
                say("converted", tag, token=holds[tag].token, mode=holds[tag].mode)
            case "upgrade":
                await holds[tag].try_upgrade()
                say("converted", tag, token=holds[tag].token, mode=holds[tag].mode)
            case "release":
                hold = holds.pop(tag)
                say("release-asked", tag, **trust(hold))
                await hold.release()
                say("released", tag)
            case "drop":
                say("drop-asked", tag, **trust(holds[tag]))
                del holds[tag]
                say("dropped", tag)
            case "relay":
                await relay(tag, clients[words[0]].lock(words[1]))
            case "resize":
                say("resize-asked", tag, lock=words[1], of=words[2])
                semaphore = clients[words[0]].semaphore(words[1], int(words[2]))
                used = await semaphore.resize(int(words[2]))
                say("resized", tag, used="yes" if used else "no")
            case "list":
                say("listed", tag, count=len(await clients[words[0]].list("", int(words[1]))))
            case "name":
                clients[words[0]].lock(NAMES[words[1]])
                say("named", tag)
            case "close":
                all_released = await clients[tag].close(**drain(words))
                say("closed", tag, all="yes" if all_released else "no")
    except fencelock.FencelockError as error:
        failed(verb, tag, error)
    except KeyError:
        pass  # It is over.


async def main() -> None:
    """Read and obey until nobody tells us what to do any more."""
    lines = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    async for line in lines:
        verb, tag, *rest = line.decode().split()
        if verb == "leave":
            return
        waiting = verb in {"acquire", "attach"}
        if waiting:
            asked(tag, rest)
        task = asyncio.create_task(obey(verb, tag, rest))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if waiting:
            waits[tag] = task
            task.add_done_callback(lambda _, tag=tag: waits.pop(tag))


asyncio.run(main())
