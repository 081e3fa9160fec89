"""The loops that the tests of tasks run in, and how they wait there."""

import asyncio
import gc

from conftest import BOUND

try:
    import uvloop
except ImportError:
    uvloop = None


def plain_runner(main):
    return asyncio.run(main)


def uvloop_runner(main):
    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


class NoReaders(asyncio.SelectorEventLoop):
    """A loop that cannot watch descriptors, such as Windows' proactor."""

    def add_reader(self, fd, callback, *args):
        if fd == getattr(self._ssock, "fileno", lambda: -1)():
            return super().add_reader(fd, callback, *args)
        raise NotImplementedError


def readerless_runner(main):
    loop = NoReaders()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


RUNNERS = {"asyncio": plain_runner, "readerless": readerless_runner}
if uvloop is not None:
    RUNNERS["uvloop"] = uvloop_runner


async def acquired(lock):
    """Acquire as a task of its own does: the owner is who calls."""
    return await lock.acquire()


async def wait_until(condition):
    """Poll a coroutine function, within the bound of all tests."""
    end = asyncio.get_running_loop().time() + BOUND
    while not await condition():
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.002)


def waiting(client, count):
    """Make a condition: so many wait in the client."""

    async def condition():
        return f"fencelock_waiting {count}\n" in client.metrics()

    return condition


def alive(kind):
    """How many objects of a class there are."""
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())
