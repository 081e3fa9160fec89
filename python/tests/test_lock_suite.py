"""CPython's own suites, run on ours: for threading's Lock, RLock, BoundedSemaphore; asyncio.Lock.

Every case runs but those in LEFT_OUT, each with its reason: a case that is new in a Python is run
there, and one that is gone is noticed.
"""

import asyncio
import importlib
import itertools
import unittest

import pytest

import fencelock
from fencelock import aio

_names = itertools.count()

PRIVATE = "looks into asyncio.Lock's private list of waiters; test_aio.py has the like"
LEFT_OUT = {
    "LockTests": {
        "test_at_fork_reinit": "private; after a fork the whole client is another one",
    },
    "RLockTests": {
        "test_recursion_count": "private; ours is Lock.count",
    },
    "BoundedSemaphoreTests": {
        "test_acquire_timeout": "a bound of 5 ms may pass; test_semaphore.py has the like",
        "test_multirelease": "ours takes no number: what was taken together is given back together",
        "test_release_unacquired": "ours is a RuntimeError; test_semaphore.py has the like",
        "test_repr": "ours shows its name",
    },
    "asyncio": {
        "test_acquire_cancel": PRIVATE,
        "test_cancel_race": PRIVATE,
        "test_finished_waiter_cancelled": PRIVATE,
        "test_lock_doesnt_accept_loop_parameter": "about a parameter that asyncio once had",
        "test_ctor_loop": "about a parameter that asyncio once had",
        "test_ctor_noloop": "about the loop that asyncio once kept in the lock",
    },
}


def new_lock(client, reentrant):
    """Give what makes a lock of a name that no other test has."""

    def make(*arguments, **options):
        if arguments or options:
            raise TypeError("the suite asks that arguments are refused")
        return client.lock(f"lock-{next(_names)}", reentrant=reentrant)

    return make


try:
    lock_tests = importlib.import_module("test.lock_tests")
except ImportError:
    lock_tests = None
try:
    locks = importlib.import_module("test.test_asyncio.test_locks")
except ImportError:
    locks = None


def cases(suite, left_out):
    """Give the suite's cases that are run."""
    return [case for case in unittest.TestLoader().getTestCaseNames(suite) if case not in left_out]


def run(ours, left_out, least):
    chosen = cases(ours, left_out)
    assert len(chosen) >= least
    result = unittest.TestResult()
    unittest.TestSuite(ours(case) for case in chosen).run(result)
    broken = "\n".join(f"{case}\n{text}" for case, text in result.failures + result.errors)
    assert not broken, broken
    assert result.testsRun == len(chosen)
    assert not result.skipped


@pytest.mark.skipif(lock_tests is None, reason="this Python comes without its own tests")
@pytest.mark.parametrize("kind", ["LockTests", "RLockTests"])
def test_threading(kind):
    suite = getattr(lock_tests, kind)
    # Some cases leave what they hold to the end.
    with fencelock.connect("memory:suite") as client:
        make = new_lock(client, reentrant=kind == "RLockTests")
        run(type(kind, (suite,), {"locktype": staticmethod(make)}), LEFT_OUT[kind], 14)


@pytest.mark.skipif(lock_tests is None, reason="this Python comes without its own tests")
def test_semaphores():
    kind = "BoundedSemaphoreTests"
    with fencelock.connect("memory:suite-semaphores") as client:

        def make(value=1):
            return client.semaphore(f"semaphore-{next(_names)}", value)

        suite = (getattr(lock_tests, kind),)
        run(type(kind, suite, {"semtype": staticmethod(make)}), LEFT_OUT[kind], 7)


@pytest.mark.skipif(locks is None, reason="this Python comes without its own tests")
def test_asyncio(monkeypatch):
    async def connect():
        return await aio.connect("memory:suite-aio")

    client = asyncio.run(connect())

    def make():
        return client.lock(f"lock-{next(_names)}", reentrant=False)

    # The suite finds its lock there; its other primitives stay asyncio's.
    monkeypatch.setattr(locks.asyncio, "Lock", make)
    run(type("LockTests", (locks.LockTests,), {}), LEFT_OUT["asyncio"], 7)
    asyncio.run(client.close())


@pytest.mark.skipif(
    lock_tests is None or locks is None, reason="this Python comes without its own tests"
)
def test_what_is_left_out_is_there_to_be_left_out():
    """An entry that no suite of the supported Pythons has any more must go."""
    import sys

    there = {
        *unittest.TestLoader().getTestCaseNames(lock_tests.LockTests),
        *unittest.TestLoader().getTestCaseNames(lock_tests.RLockTests),
        *unittest.TestLoader().getTestCaseNames(lock_tests.BoundedSemaphoreTests),
        *unittest.TestLoader().getTestCaseNames(locks.LockTests),
    }
    listed = {case for left_out in LEFT_OUT.values() for case in left_out}
    old = {"test_ctor_loop", "test_ctor_noloop"} if sys.version_info >= (3, 10) else set()
    new = {"test_recursion_count"} if sys.version_info < (3, 11, 4) else set()
    new |= {"test_repr"} if sys.version_info < (3, 11) else set()
    missing = listed - there - old - new
    if sys.version_info < (3, 10):
        missing -= {"test_lock_doesnt_accept_loop_parameter", "test_at_fork_reinit"}
    assert not missing
