"""What a Python without any tools shows: that the binary loads there, and works.

`PYTHONPATH=python python3.X python/tests/smoke.py`
"""

import asyncio
import importlib
import itertools
import os
import sys
import threading
import unittest

import fencelock
from fencelock import aio

names = itertools.count()


def threads():
    client = fencelock.connect("memory:threads")
    lock = client.lock("x")
    total = inside = 0

    def work():
        nonlocal total, inside
        for _ in range(100):
            with lock as hold:
                inside += 1
                assert inside == 1 and hold.valid  # noqa: PT018
                total += 1
                inside -= 1

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert total == 800
    prices, mailers = client.rwlock("prices"), client.semaphore("mailers", 2)
    with prices.reader_lock as read, prices.reader_lock, mailers, mailers:
        assert not mailers.acquire(blocking=False)
        try:
            prices.writer_lock.acquire()
        except fencelock.WouldDeadlockError:
            pass
        else:
            raise AssertionError("a reader waits for itself")
    with prices.writer_lock as written:
        assert written.token > read.token
    assert client.close()


async def tell(condition):
    async with condition:
        condition.notify_all()


async def tasks():
    async with await aio.connect("memory:tasks") as client:
        lock = client.lock("x")
        total = 0

        async def work():
            nonlocal total
            async with lock:
                total += 1
                await asyncio.sleep(0)

        await asyncio.gather(*[work() for _ in range(100)])
        assert total == 100
        # The owner is this task, whichever runs the coroutine.
        for way in (lambda wait: asyncio.wait_for(wait, 60), asyncio.gather):
            await way(lock.acquire())
            assert lock.count == 1
            await lock.release()
        condition = asyncio.Condition(lock)
        async with condition:
            condition.notify_all()
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(tell(condition)))
            await condition.wait()
        async with lock:
            waiting = [asyncio.ensure_future(work()) for _ in range(50)]
            await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        assert total == 100
        async with client.rwlock("prices").reader_lock, client.semaphore("mailers", 1):
            assert await client.semaphore("mailers", 1).available_permits() == 0
        try:
            async with client.lock("lost", lease=0.1, cancel_on_lost=True):
                await asyncio.sleep(60)
        except fencelock.LostError:
            pass
        else:
            raise AssertionError("the loss was not told")


def suite():
    """CPython's own cases, where this Python comes with them."""
    try:
        lock_tests = importlib.import_module("test.lock_tests")
    except ImportError:
        return
    client = fencelock.connect("memory:suite")
    for kind, reentrant in [("LockTests", False), ("RLockTests", True)]:

        def make(reentrant=reentrant):
            return client.lock(f"lock-{next(names)}", reentrant=reentrant)

        ours = type(kind, (getattr(lock_tests, kind),), {"locktype": staticmethod(make)})
        private = {"test_at_fork_reinit", "test_recursion_count"}
        chosen = set(unittest.TestLoader().getTestCaseNames(ours)) - private
        result = unittest.TestResult()
        unittest.TestSuite(ours(case) for case in sorted(chosen)).run(result)
        assert result.wasSuccessful(), result.failures + result.errors


def fork():
    client = fencelock.connect("memory:fork")
    child = os.fork()
    if child == 0:
        own = fencelock.connect("memory:")
        os._exit(0 if client.closed and own.lock("x").acquire() else 1)
    assert os.waitpid(child, 0)[1] == 0


fork()
threads()
asyncio.run(tasks())
suite()
# The end of the interpreter must cope with this.
held = fencelock.shared("memory:held").lock("x").hold()
print("fencelock works on Python", sys.version.split()[0])
