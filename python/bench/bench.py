"""What a lock costs in Python, ours beside the others', in one interleaved run.

`scripts/python bench`. Every case runs its sides in turn, so long each, every second round
backwards; shown is the median of each side, and of the ratio of ours to it within a round.
A Redis server of its own is started; ZooKeeper takes part when FENCELOCK_TEST_ZK names one, as
`scripts/python bench` sees to where a server is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import redis
import redis.asyncio
import redis_lock

import fencelock
from fencelock import aio

ZOOKEEPER = os.environ.get("FENCELOCK_TEST_ZK", "")
Side = Callable[[float], float]


@contextmanager
def server() -> Iterator[int]:
    """Run a Redis server of our own."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = os.environ.get("REDIS_SERVER") or shutil.which("redis-server") or "redis-server"
    with tempfile.TemporaryDirectory() as folder:
        running = subprocess.Popen(
            [program, "--port", str(port), "--save", "", "--appendonly", "no"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        try:
            client = redis.Redis(port=port)
            while True:
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
            yield port
        finally:
            running.kill()
            running.wait()


def loop(action: Callable[[], object]) -> Side:
    """Make a side of an action that is repeated; gives how often a second."""

    def side(seconds: float) -> float:
        count = 0
        began = time.perf_counter()
        end = began + seconds
        while time.perf_counter() < end:
            for _ in range(10):
                action()
            count += 10
        return count / (time.perf_counter() - began)

    return side


def threads(number: int, make: Callable[[int], Callable[[], object]]) -> Side:
    """Make a side of threads that each repeat an action."""

    def side(seconds: float) -> float:
        counts = [0] * number
        ready = threading.Barrier(number + 1)
        ended = threading.Event()

        def work(index: int) -> None:
            action = make(index)
            ready.wait()
            while not ended.is_set():
                action()
                counts[index] += 1

        workers = [threading.Thread(target=work, args=(index,)) for index in range(number)]
        for worker in workers:
            worker.start()
        ready.wait()
        began = time.perf_counter()
        time.sleep(seconds)
        done, took = sum(counts), time.perf_counter() - began
        ended.set()
        for worker in workers:
            worker.join()
        return done / took

    return side


def ring(number: int) -> Side:
    """Make a side of threads that pass a turn round by semaphores: the floor of a hand-off."""

    def side(seconds: float) -> float:
        turns = [threading.Semaphore(0) for _ in range(number)]
        ended = threading.Event()
        count = 0

        def work(index: int) -> None:
            nonlocal count
            while True:
                turns[index].acquire()
                if ended.is_set():
                    turns[(index + 1) % number].release()
                    return
                count += 1
                turns[(index + 1) % number].release()

        workers = [threading.Thread(target=work, args=(index,)) for index in range(number)]
        for worker in workers:
            worker.start()
        began = time.perf_counter()
        turns[0].release()
        time.sleep(seconds)
        done, took = count, time.perf_counter() - began
        ended.set()
        for worker in workers:
            worker.join()
        return done / took

    return side


def tasks(number: int, open_: Callable[[], object], keys: int) -> Side:
    """Make a side of tasks that each repeat `async with` on their lock."""

    def side(seconds: float) -> float:
        async def main() -> float:
            make, close = await open_()  # type: ignore[misc]
            count = 0
            began = time.perf_counter()
            end = began + seconds

            async def work(index: int) -> None:
                nonlocal count
                lock = make(index % keys)
                while time.perf_counter() < end:
                    async with lock:
                        count += 1

            await asyncio.gather(*[work(index) for index in range(number)])
            took = time.perf_counter() - began
            await close()
            return count / took

        return asyncio.run(main())

    return side


def ours_aio(url: str) -> Callable[[], object]:
    """Give what opens our asynchronous client."""

    async def open_() -> tuple[Callable[[int], object], Callable[[], object]]:
        client = await aio.connect(url)
        return lambda key: client.lock(f"aio-{key}"), client.close

    return open_


def theirs_aio(port: int) -> Callable[[], object]:
    """Give what opens redis-py's."""

    async def open_() -> tuple[Callable[[int], object], Callable[[], object]]:
        client = redis.asyncio.Redis(port=port)
        return lambda key: client.lock(f"their-aio-{key}", timeout=30), client.aclose

    return open_


def handoff(make: Callable[[str], object], target: str) -> Side:
    """Make a side that measures from one process's release to the other's grant, in 1/s."""

    def side(seconds: float) -> float:
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(
            target=_follow, args=(make, target, theirs)
        )
        child.start()
        lock = make(target)
        spans = []
        ours.recv()
        end = time.perf_counter() + 3 * seconds
        while time.perf_counter() < end or len(spans) < 3:
            lock.acquire()  # type: ignore[attr-defined]
            ours.send(True)
            time.sleep(0.005)
            began = time.clock_gettime(time.CLOCK_MONOTONIC)
            lock.release()  # type: ignore[attr-defined]
            spans.append(ours.recv() - began)
            ours.recv()
        ours.send(False)
        child.join()
        return 1 / statistics.median(spans)

    return side


def _follow(make: Callable[[str], object], target: str, pipe: object) -> None:
    lock = make(target)
    pipe.send("ready")  # type: ignore[attr-defined]
    while pipe.recv():  # type: ignore[attr-defined]
        lock.acquire()  # type: ignore[attr-defined]
        pipe.send(time.clock_gettime(time.CLOCK_MONOTONIC))  # type: ignore[attr-defined]
        lock.release()  # type: ignore[attr-defined]
        pipe.send("released")  # type: ignore[attr-defined]


def make_ours(url: str) -> object:
    """Give our lock in this process."""
    return fencelock.shared(url).lock("between")


def make_redis_py(port: str) -> object:
    """Give redis-py's."""
    return redis.Redis(port=int(port)).lock("their-between", timeout=30)


def make_redis_lock(port: str) -> object:
    """Give python-redis-lock's."""
    return redis_lock.Lock(redis.Redis(port=int(port)), "prl-between", expire=30)


def make_kazoo(hosts: str) -> object:
    """Give kazoo's."""
    from kazoo.client import KazooClient

    client = KazooClient(hosts=hosts)
    client.start()
    return client.Lock("/bench-between")


def pair(lock: object) -> Callable[[], None]:
    """Give an acquire and a release."""

    def action() -> None:
        lock.acquire()  # type: ignore[attr-defined]
        lock.release()  # type: ignore[attr-defined]

    return action


def cases(port: int) -> dict[str, dict[str, Side]]:
    """Give every case with its sides, ours first."""
    url = f"redis://127.0.0.1:{port}"
    bare = redis.Redis(port=port)
    client, memory = fencelock.connect(url), fencelock.connect("memory:bench")
    held, plain = memory.lock("re-entry"), threading.RLock()
    held.acquire()
    plain.acquire()

    def two() -> None:
        bare.set("bare", "token", nx=True, px=30000)
        bare.delete("bare")

    found: dict[str, dict[str, Side]] = {
        "re-entry": {"fencelock": loop(pair(held)), "threading.RLock": loop(pair(plain))},
        "pair": {
            "fencelock": loop(pair(client.lock("pair"))),
            "redis-py Lock": loop(pair(bare.lock("their-pair", timeout=30))),
            "two redis-py commands": loop(two),
            "python-redis-lock": loop(pair(redis_lock.Lock(bare, "prl-pair", expire=30))),
        },
        "16 threads, one key": {
            "fencelock": threads(16, lambda _: pair(client.lock("one"))),
            "ring of semaphores": ring(16),
            "redis-py Lock": threads(16, lambda _: pair(bare.lock("their-one", timeout=30))),
            "python-redis-lock": threads(
                16, lambda _: pair(redis_lock.Lock(bare, "prl-one", expire=30))
            ),
        },
        "16 threads, 16 keys": {
            "fencelock": threads(16, lambda index: pair(client.lock(f"many-{index}"))),
            "redis-py Lock": threads(
                16, lambda index: pair(bare.lock(f"their-many-{index}", timeout=30))
            ),
            "python-redis-lock": threads(
                16, lambda index: pair(redis_lock.Lock(bare, f"prl-many-{index}", expire=30))
            ),
        },
        "64 tasks, one key": {
            "fencelock": tasks(64, ours_aio(url), 1),
            "redis-py asyncio Lock": tasks(64, theirs_aio(port), 1),
        },
        "64 tasks, 64 keys": {
            "fencelock": tasks(64, ours_aio(url), 64),
            "redis-py asyncio Lock": tasks(64, theirs_aio(port), 64),
        },
        "hand-off between processes": {
            "fencelock": handoff(make_ours, url),
            "redis-py Lock": handoff(make_redis_py, str(port)),
            "python-redis-lock": handoff(make_redis_lock, str(port)),
        },
    }
    if ZOOKEEPER:
        hosts = ZOOKEEPER.partition("://")[2].partition("/")[0]
        zk = fencelock.connect(ZOOKEEPER)
        theirs = make_kazoo(hosts)
        found["pair on ZooKeeper"] = {
            "fencelock": loop(pair(zk.lock("bench/pair"))),
            "kazoo": loop(pair(theirs.client.Lock("/bench-pair"))),  # type: ignore[attr-defined]
        }
        found["hand-off on ZooKeeper"] = {
            "fencelock": handoff(make_ours, ZOOKEEPER),
            "kazoo": handoff(make_kazoo, hosts),
        }
    return found


def measure(sides: dict[str, Side], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Run the sides in turn."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides) if number % 2 == 0 else list(reversed(sides))
        for name in order:
            rates[name].append(sides[name](seconds))
    return rates


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", help="a file for all figures, as JSON")
    options = parser.parse_args()
    # python-redis-lock tells of each hand-over.
    logging.disable(logging.CRITICAL)
    results = {}
    with server() as port:
        for case, sides in cases(port).items():
            if options.only not in case:
                continue
            rates = results[case] = measure(sides, options.rounds, options.seconds)
            print(f"\n{case}")
            for name, all_rates in rates.items():
                ratios = [ours / theirs for ours, theirs in zip(rates["fencelock"], all_rates)]
                rate = statistics.median(all_rates)
                print(
                    f"  {name:24} {rate:12,.0f}/s {1e6 / rate:12,.2f} us"
                    f"   ours is {statistics.median(ratios):8.2f} x"
                )
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
