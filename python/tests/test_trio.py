"""Locks of tasks, under trio and anyio."""

import asyncio
import random

import pytest
from conftest import BOUND, assert_empty
from loops import acquired, alive

import fencelock
from fencelock import aio


def test_trio(url, name):
    trio = pytest.importorskip("trio")

    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            lock = client.lock(name)
            total = 0

            async def work():
                nonlocal total
                for _ in range(10):
                    async with lock:
                        total += 1

            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(work)
            assert total == 100
            # Cancelled at random moments.
            for _ in range(100):
                with trio.move_on_after(random.random() * 0.002):
                    async with lock:
                        await trio.sleep(random.random() * 0.002)
            hold = await other.lock(name).hold(timeout=BOUND)
            with trio.move_on_after(0.02) as scope:
                await lock.acquire()
            assert scope.cancelled_caught
            await hold.release()
            assert await other.lock(name).acquire(timeout=BOUND)
            await other.lock(name).current.release() if other.lock(name).current else None
            with pytest.raises(fencelock.LostError):
                async with client.lock(name + "/lost", lease=0.2, cancel_on_lost=True):
                    await trio.sleep(3 * BOUND)
            lost = client.lock(name + "/hold", lease=0.2, cancel_on_lost=True)
            with pytest.raises(fencelock.LostError) as raised:
                async with await lost.hold(timeout=BOUND):
                    await trio.sleep(3 * BOUND)
            assert isinstance(raised.value.__cause__, trio.Cancelled)
            async with client.lock(name + "/told", lease=0.2, raise_on_lost=False) as hold:
                told = []
                hold.on_lost(told.append)
                assert await hold.lost.wait()
                assert told == ["ended"]

    trio.run(main)
    with fencelock.connect(url) as client:
        assert_empty(client, name)


def test_trio_every_acquire_is_a_checkpoint(url, name):
    trio = pytest.importorskip("trio")

    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name)
            for acquire in (lock.acquire, lock.hold, lock.__aenter__):
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await acquire()
                assert scope.cancelled_caught
                assert not lock.locked()
            others = 0

            async def other():
                nonlocal others
                while True:
                    others += 1
                    await trio.lowlevel.checkpoint()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(other)
                with trio.fail_after(BOUND):
                    while others < 10:
                        async with lock:
                            pass
                nursery.cancel_scope.cancel()

    trio.run(main)


def test_trio_as_a_guest_of_asyncio(name):
    """A loop of asyncio runs in the thread, but the task is one of trio's."""
    trio = pytest.importorskip("trio")

    async def guest():
        async with await aio.connect("memory:guest") as client:
            lock = client.lock(name)
            async with lock:
                return lock.count

    async def host():
        ended = asyncio.get_running_loop().create_future()
        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=asyncio.get_running_loop().call_soon_threadsafe,
            done_callback=ended.set_result,
        )
        async with await aio.connect("memory:guest") as client, client.lock(name + "/host"):
            return (await asyncio.wait_for(ended, BOUND)).unwrap()

    assert asyncio.run(host()) == 1


def test_trio_waits_for_the_loss_that_are_given_up_leave_nothing(name):
    trio = pytest.importorskip("trio")

    async def main():
        from fencelock.aio._trio import _Waiter

        async with await aio.connect("memory:given-up") as client, client.lock(name) as hold:
            before = alive(_Waiter)
            for _ in range(100):
                with trio.move_on_after(0) as scope:
                    await hold.lost.wait()
                assert scope.cancelled_caught
            with trio.fail_after(BOUND):
                while alive(_Waiter) > before + 10:
                    await trio.sleep(0.002)

    trio.run(main)


def test_anyio_on_both_loops(name):
    anyio = pytest.importorskip("anyio")

    async def main():
        async with await aio.connect("memory:anyio") as client:
            lock = client.lock(name)
            async with anyio.create_task_group() as group, lock:
                group.start_soon(acquired, lock)
                await anyio.sleep(0.01)
                group.cancel_scope.cancel()
            assert await lock.acquire(timeout=BOUND)
            return client.store

    assert anyio.run(main) == "memory"
    pytest.importorskip("trio")
    assert anyio.run(main, backend="trio") == "memory"
