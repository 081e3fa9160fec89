"""The driver of Python's threads: says what `fencelock` says. See ../README.md for the protocol."""

from __future__ import annotations

import sys
import threading
from typing import Callable

import fencelock
from words import NAMES, asked, begun, drain, failed, granted, options, say, trust

clients: dict[str, fencelock.Client] = {}
holds: dict[str, fencelock.Hold] = {}


def acquire(tag: str, wait: Callable[[], fencelock.Hold]) -> None:
    """Acquire, and say what came of it."""
    hold = holds[tag] = wait()
    granted(tag, hold)
    hold.on_lost(lambda reason: say("lost", tag, reason=reason))


def obey(verb: str, tag: str, words: list[str]) -> None:
    """Do one thing."""
    try:
        match verb:
            case "open":
                clients[tag] = fencelock.connect(words[0])
                # A thread that waits hears nothing but signals.
                say("opened", tag, id=clients[tag].id, lacks="cancel", knows="modes,conversions,resize")
            case "acquire":
                acquire(tag, lambda: begun(clients[words[0]], words[1], options(words)))
            case "attach":
                acquire(tag, lambda: clients[words[0]].attach(words[1]))
            case "look":
                say("seen", tag, **trust(holds[tag]))
            case "ticket":
                say("ticket", tag, text=holds[tag].ticket())
            case "downgrade":
                say("downgrade-asked", tag, **trust(holds[tag]))
                holds[tag].downgrade()
                say("converted", tag, token=holds[tag].token, mode=holds[tag].mode)
            case "upgrade":
                holds[tag].try_upgrade()
                say("converted", tag, token=holds[tag].token, mode=holds[tag].mode)
            case "release":
                hold = holds.pop(tag)
                say("release-asked", tag, **trust(hold))
                hold.release()
                say("released", tag)
            case "drop":
                say("drop-asked", tag, **trust(holds[tag]))
                del holds[tag]
                say("dropped", tag)
            case "resize":
                say("resize-asked", tag, lock=words[1], of=words[2])
                used = clients[words[0]].semaphore(words[1], int(words[2])).resize(int(words[2]))
                say("resized", tag, used="yes" if used else "no")
            case "list":
                say("listed", tag, count=len(clients[words[0]].list("", int(words[1]))))
            case "name":
                clients[words[0]].lock(NAMES[words[1]])
                say("named", tag)
            case "close":
                say("closed", tag, all="yes" if clients[tag].close(**drain(words)) else "no")
    except fencelock.FencelockError as error:
        failed(verb, tag, error)
    except KeyError:
        pass  # It is over.


for line in sys.stdin:
    verb, tag, *rest = line.split()
    if verb == "leave":
        sys.exit(0)
    if verb in {"acquire", "attach"}:
        asked(tag, rest)
    threading.Thread(target=obey, args=(verb, tag, rest), daemon=True).start()
