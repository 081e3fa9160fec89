"""kazoo's client in a process of its own, told what to do line by line, as Curator's driver is.

open CLIENT CONNECT SESSION_MS      opened CLIENT
acquire TAG CLIENT PATH             asked TAG, then granted TAG at=…
release TAG                         released TAG at=… (when it was called)
participants CLIENT PATH            participants CLIENT node,node…
measure KIND CLIENT PATH COUNT      measured KIND nanoseconds

Instants are nanoseconds of the machine's monotonic clock, which all processes share.
"""

import sys
import threading
import time

from kazoo.client import KazooClient

KINDS = {"pairs": (1, False), "paths64": (64, True), "hot16": (16, False), "hot4": (4, False)}


def say(line: str) -> None:
    print(line, flush=True)


def measure(client: KazooClient, path: str, kind: str, count: int) -> int:
    """`count` pairs in all, by so many threads, each with a path of its own or all on one."""
    threads, apart = KINDS[kind]
    start = threading.Barrier(threads + 1)

    def work(thread: int) -> None:
        lock = client.Lock(f"{path}/{thread}" if apart else path)
        turns = count // threads + (1 if thread < count % threads else 0)
        start.wait()
        for _ in range(turns):
            lock.acquire()
            lock.release()

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.monotonic_ns()
    for worker in workers:
        worker.join()
    return time.monotonic_ns() - began


def main() -> None:
    clients: dict[str, KazooClient] = {}
    locks: dict[str, object] = {}

    def acquire(tag: str, client: str, path: str) -> None:
        lock = clients[client].Lock(path)
        say(f"asked {tag}")
        lock.acquire()
        at = time.monotonic_ns()
        locks[tag] = lock
        say(f"granted {tag} at={at}")

    for line in sys.stdin:
        verb, tag, *rest = line.split()
        if verb == "open":
            client = KazooClient(hosts=rest[0], timeout=int(rest[1]) / 1000)
            client.start(timeout=30)
            clients[tag] = client
            say(f"opened {tag}")
        elif verb == "acquire":
            threading.Thread(target=acquire, args=(tag, *rest), daemon=True).start()
        elif verb == "release":
            at = time.monotonic_ns()
            locks.pop(tag).release()
            say(f"released {tag} at={at}")
        elif verb == "participants":
            say(f"participants {tag} {','.join(clients[tag].get_children(rest[0]))}")
        elif verb == "measure":
            say(f"measured {tag} {measure(clients[rest[0]], rest[1], tag, int(rest[2]))}")
        else:
            raise ValueError(verb)


if __name__ == "__main__":
    main()
