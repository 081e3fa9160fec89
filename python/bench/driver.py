"""Lets one library work on one Redis server, as `bench/drivers/README.md` says.

`python driver.py LIBRARY URL`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis
import redis.asyncio
import redis_lock

import fencelock
from fencelock import aio

STOCK = "bench:stock"
TAKE_ONE = """
local left = tonumber(redis.call('GET', KEYS[1]))
if left > 0 then redis.call('DECR', KEYS[1]) end
return left
"""
# Callers may be more than the 100 connections that redis-py's pool would make.
UNBOUNDED: dict[str, Any] = {"max_connections": 100_000}

now = time.monotonic_ns


def say(*words: object) -> None:
    """Answer a line, in one write: those of threads do not mix."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


@contextmanager
def vital() -> Iterator[None]:
    """End the process if the body fails, since nobody would get its answer."""
    try:
        yield
    except BaseException:
        logging.exception("the driver ends")
        os._exit(1)


def start(work: Callable[..., object], *args: object) -> threading.Thread:
    """Start a thread of our own."""

    def run() -> None:
        with vital():
            work(*args)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@dataclass
class Library:
    """What the orders need of a library."""

    version: str
    # Reaches the stock.
    redis: Any
    lock: Callable[..., Any]
    # Its option for a lease that is not renewed, and what that counts, in milliseconds.
    lease: str = "lease"
    unit: int = 1
    # What its documentation recommends.
    usual: dict[str, Any] = field(default_factory=dict)
    reenters: bool = False
    locks: bool = True
    # What makes a lock for one of a thousand tasks, if not the same.
    crowd: Callable[..., Any] | None = None


class Bare:
    """The least that can be called a lock."""

    def __init__(self, client: redis.Redis, key: str, lease: float = 30) -> None:
        self.client, self.key, self.lease = client, key, int(lease * 1000)

    def acquire(self) -> None:
        """Ask each millisecond."""
        while not self.client.set(self.key, "taken", nx=True, px=self.lease):
            time.sleep(0.001)

    def release(self) -> None:
        """Delete the key, whoever has it."""
        self.client.delete(self.key)


class Driver:
    """The orders, whatever the callers are. Gives the answer, where there is one to give."""

    # Threads do these in one way, and tasks in another.
    together: Any
    repeat: Any
    enter: Any
    hold: Any
    trade: Any
    take: Any

    def __init__(self, library: Library) -> None:
        self.library = library
        self.leave: dict[str, Callable[[], object]] = {}

    def lock(self, key: str) -> Any:
        """Make a lock as one should."""
        return self.library.lock(key, **self.library.usual)

    def pairs(self, key: str, ms: str) -> tuple[object, ...]:
        """One caller."""
        done, took = self.cycle([key], ms)
        ((spans, _),) = done
        return "did", len(spans), took, sorted(spans)[len(spans) // 2]

    def keys(self, callers: str, key: str, ms: str) -> tuple[object, ...]:
        """Callers beside each other."""
        done, took = self.cycle([f"{key}-{index}" for index in range(int(callers))], ms)
        return "did", sum(len(spans) for spans, _ in done), took

    def cycle(self, keys: list[str], ms: str) -> tuple[list[tuple[list[int], int]], int]:
        """Repeat pairs, with a caller for each key."""
        done, took = self.together(self.repeat, [(self.lock(key), int(ms)) for key in keys])
        return done, took

    def hot(self, callers: str, key: str, ms: str) -> tuple[object, ...]:
        """Callers after each other."""
        work = [(self.lock(key), int(ms)) for _ in range(int(callers))]
        done, took = self.together(self.repeat, work)
        spans, waits = zip(*done)
        counts = [len(of_one) for of_one in spans]
        return "did", sum(counts), took, min(counts), max(counts), max(waits)

    def reenter(self, key: str, held: str, ms: str) -> tuple[object, ...]:
        """One caller that has the lock already."""
        if not self.library.reenters:
            return ("cannot",)
        names = [key, *(f"{key}-{index}" for index in range(1, int(held)))]
        done, _ = self.together(self.enter, [([self.lock(name) for name in names], int(ms))])
        return "did", *done[0]

    def acquire(self, tag: str, key: str, lease: str) -> tuple[object, ...] | None:
        """Acquire beside whatever else happens."""
        options = {}
        if lease != "default":
            if int(lease) % self.library.unit:
                return ("cannot",)
            options[self.library.lease] = int(lease) / 1000
        say("asked", tag)
        self.leave[tag] = self.hold(tag, self.library.lock(key, **options))
        return None

    def release(self, tag: str) -> None:
        """Release that."""
        self.leave.pop(tag)()

    def sell(self, callers: str, key: str) -> tuple[object, ...]:
        """Callers who sell what is there."""
        work = [(self.lock(key),) for _ in range(int(callers))]
        sold, took = self.together(self.trade if self.library.locks else self.take, work)
        return "sold", sum(sold), took


class Threads(Driver):
    """Callers are threads."""

    def together(self, work: Callable[..., Any], of_each: list[tuple[Any, ...]]) -> tuple[Any, int]:
        """Let callers work at once; gives what each had done, and how long all took."""
        pool = self.library.redis.connection_pool
        for connection in [pool.get_connection() for _ in of_each]:
            pool.release(connection)
        results: list[Any] = []
        began: list[int] = []
        gate = threading.Barrier(len(of_each), lambda: began.append(now()))

        def call(args: tuple[Any, ...]) -> None:
            gate.wait()
            results.append(work(*args))

        for caller in [start(call, args) for args in of_each]:
            caller.join()
        return results, now() - began[0]

    @staticmethod
    def repeat(lock: Any, ms: int) -> tuple[list[int], int]:
        """Acquire and release; gives how long each pair took, and the longest wait."""
        spans, longest = [], 0
        asked = now()
        end = asked + ms * 1_000_000
        while asked < end:
            lock.acquire()
            longest = max(longest, now() - asked)
            lock.release()
            spans.append((done := now()) - asked)
            asked = done
        return spans, longest

    @staticmethod
    def enter(locks: list[Any], ms: int) -> tuple[int, int]:
        """Hold them all, and enter the first again."""
        for lock in locks:
            lock.acquire()
        count, lock = 0, locks[0]
        began = now()
        end = began + ms * 1_000_000
        # The clock is not much cheaper than what is measured.
        while (at := now()) < end:
            for _ in range(50):
                lock.acquire()
                lock.release()
            count += 50
        for lock in locks:
            lock.release()
        return count, at - began

    def hold(self, tag: str, lock: Any) -> Callable[[], object]:
        """Hold a lock in a thread that has it to itself; gives what ends that."""
        leave = threading.Event()

        def run() -> None:
            lock.acquire()
            say("granted", tag, now())
            leave.wait()
            at = now()
            lock.release()
            say("released", tag, at)

        start(run)
        return leave.set

    def trade(self, lock: Any) -> int:
        """Sell under the lock."""
        sold, stock = 0, self.library.redis
        while True:
            lock.acquire()
            left = int(stock.get(STOCK))
            if left > 0:
                stock.set(STOCK, left - 1)
            lock.release()
            if left <= 0:
                return sold
            sold += 1

    def take(self, _: Any) -> int:
        """Sell without it."""
        sold, script = 0, self.library.redis.register_script(TAKE_ONE)
        while script([STOCK]) > 0:
            sold += 1
        return sold

    def wait(self, _count: str, _key: str) -> tuple[object, ...]:
        """A wait would cost a thread."""
        return ("cannot",)


class Tasks(Driver):
    """Callers are tasks of one loop, which has a thread of its own: orders are read meanwhile."""

    def __init__(self, connect: Callable[[str], Coroutine[Any, Any, Library]], url: str) -> None:
        self.loop = asyncio.new_event_loop()
        start(self.loop.run_forever)
        self.waiting: list[asyncio.Task[None]] = []
        super().__init__(self.call(connect(url)))

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for something in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def together(self, work: Callable[..., Any], of_each: list[tuple[Any, ...]]) -> tuple[Any, int]:
        """Let callers work at once; gives what each had done, and how long all took."""

        async def run() -> tuple[Any, int]:
            pool = self.library.redis.connection_pool
            for connection in [await pool.get_connection() for _ in of_each]:
                await pool.release(connection)
            began = now()
            return await asyncio.gather(*[work(*args) for args in of_each]), now() - began

        return self.call(run())

    @staticmethod
    async def repeat(lock: Any, ms: int) -> tuple[list[int], int]:
        """Acquire and release; gives how long each pair took, and the longest wait."""
        spans, longest = [], 0
        asked = now()
        end = asked + ms * 1_000_000
        while asked < end:
            await lock.acquire()
            longest = max(longest, now() - asked)
            await lock.release()
            spans.append((done := now()) - asked)
            asked = done
        return spans, longest

    @staticmethod
    async def enter(locks: list[Any], ms: int) -> tuple[int, int]:
        """Hold them all, and enter the first again."""
        for lock in locks:
            await lock.acquire()
        count, lock = 0, locks[0]
        began = now()
        end = began + ms * 1_000_000
        while (at := now()) < end:
            for _ in range(50):
                await lock.acquire()
                await lock.release()
            count += 50
        for lock in locks:
            await lock.release()
        return count, at - began

    def hold(self, tag: str, lock: Any) -> Callable[[], object]:
        """Hold a lock in a task of its own; gives what ends that."""
        leave = asyncio.Event()

        async def run() -> None:
            with vital():
                await lock.acquire()
                say("granted", tag, now())
                await leave.wait()
                at = now()
                await lock.release()
                say("released", tag, at)

        asyncio.run_coroutine_threadsafe(run(), self.loop)
        return partial(self.loop.call_soon_threadsafe, leave.set)

    async def trade(self, lock: Any) -> int:
        """Sell under the lock."""
        sold, stock = 0, self.library.redis
        while True:
            await lock.acquire()
            left = int(await stock.get(STOCK))
            if left > 0:
                await stock.set(STOCK, left - 1)
            await lock.release()
            if left <= 0:
                return sold
            sold += 1

    def wait(self, count: str, key: str) -> tuple[object, ...]:
        """Wait until the process ends."""
        library = self.library
        make = library.crowd or library.lock

        async def one() -> None:
            with vital():
                await make(key, **library.usual).acquire()

        async def run() -> None:
            self.waiting += [asyncio.create_task(one()) for _ in range(int(count))]
            # Each gets its first turn.
            await asyncio.sleep(0)

        self.call(run())
        return "waiting", count


def ours(url: str) -> Library:
    """Our locks of threads."""
    stock = redis.Redis.from_url(url, **UNBOUNDED)
    return Library(fencelock.__version__, stock, fencelock.connect(url).lock, reenters=True)


async def ours_aio(url: str) -> Library:
    """Our locks of tasks."""
    stock = redis.asyncio.Redis.from_url(url, **UNBOUNDED)
    client = await aio.connect(url)
    return Library(fencelock.__version__, stock, client.lock, reenters=True)


def redis_py(url: str) -> Library:
    """The locks that redis-py has."""
    client = redis.Redis.from_url(url, **UNBOUNDED)
    client.ping()
    return Library(redis.__version__, client, client.lock, "timeout", usual={"timeout": 30})


async def redis_py_aio(url: str) -> Library:
    """The same for tasks."""
    client = redis.asyncio.Redis.from_url(url, **UNBOUNDED)
    await client.ping()
    # Instead of a connection for each that asks: they wait for one of 50. Each turn is dearer so.
    pool = redis.asyncio.BlockingConnectionPool.from_url(url, timeout=None)
    crowd = redis.asyncio.Redis(connection_pool=pool).lock
    return Library(
        redis.__version__, client, client.lock, "timeout", usual={"timeout": 30}, crowd=crowd
    )


def python_redis_lock(url: str) -> Library:
    """Those of python-redis-lock, whose leases are whole seconds."""
    # It waits in a BLPOP, for longer than the 5 s after which redis-py gives an answer up.
    client = redis.Redis.from_url(url, socket_timeout=None, **UNBOUNDED)
    client.ping()
    return Library(
        redis_lock.__version__,
        client,
        partial(redis_lock.Lock, client),
        "expire",
        1000,
        {"expire": 30, "auto_renewal": True},
    )


def bare(url: str) -> Library:
    """SET and DEL."""
    client = redis.Redis.from_url(url, **UNBOUNDED)
    client.ping()
    return Library(redis.__version__, client, partial(Bare, client), locks=False)


DRIVERS: dict[str, Callable[[str], Driver]] = {
    "fencelock": lambda url: Threads(ours(url)),
    "fencelock-asyncio": partial(Tasks, ours_aio),
    "redis-py": lambda url: Threads(redis_py(url)),
    "redis-py-asyncio": partial(Tasks, redis_py_aio),
    "python-redis-lock": lambda url: Threads(python_redis_lock(url)),
    "bare": lambda url: Threads(bare(url)),
}


def main() -> None:
    """Obey, until nobody orders any more."""
    driver = DRIVERS[sys.argv[1]](sys.argv[2])
    say("ready", driver.library.version)

    def obey(name: str, *words: str) -> None:
        answer = getattr(driver, name)(*words)
        if answer:
            say(*answer)

    for line in sys.stdin:
        order = line.split()
        # What only begins something is done in the order in which it came.
        if order[0] in ("acquire", "release"):
            obey(*order)
        else:
            start(obey, *order)


if __name__ == "__main__":
    with vital():
        main()
    # At once: threads may be waiting for what never comes.
    os._exit(0)
