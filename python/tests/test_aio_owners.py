"""Who owns a lock of tasks, and until when."""

import asyncio
import gc
import inspect
import sys

import pytest
from conftest import BOUND
from loops import wait_until, waiting

import fencelock
from fencelock import aio


def test_the_owner_is_the_task(loop, url, name):
    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name)

            async def other():
                assert lock.count == 0
                assert not await lock.acquire(blocking=False)
                assert not await lock.acquire(timeout=0.02)
                with pytest.raises(fencelock.TimedOutError):
                    await lock.hold(timeout=0.02)
                with pytest.raises(fencelock.NotHeldError):
                    lock.release()

            async with lock, lock as again:
                assert again.reentry
                await asyncio.gather(other(), other())
            async with client.lock(name, reentrant=False) as hold:
                assert not hold.reentry
                assert not await client.lock(name, reentrant=False).acquire(blocking=False)

    loop(main())


def test_two_acquires_of_one_task_are_granted_together(loop, url, name):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            held = await other.lock(name).hold()
            lock = client.lock(name)
            both = asyncio.gather(lock.acquire(), lock.acquire())
            await wait_until(waiting(client, 2))
            await held.release()
            assert await asyncio.wait_for(both, BOUND) == [True, True]
            assert lock.count == 2
            await lock.release()
            assert lock.locked()
            await lock.release()
            assert not lock.locked()

    loop(main())


def test_tasks_of_one_explicit_owner_keep_their_own_holds(url, name):
    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name, owner="trace", cancel_on_lost=True)
            entered = asyncio.Event()
            leave = asyncio.Event()

            async def first():
                async with lock as hold:
                    entered.set()
                    await leave.wait()
                    assert lock.current is hold

            task = asyncio.ensure_future(first())
            await entered.wait()
            async with lock as hold:
                assert lock.current is hold
                leave.set()
                await task
                assert hold.valid
            assert not await lock.locked_anywhere()

    asyncio.run(main())


def test_the_owner_is_who_calls(loop, url, name):
    """Whichever task runs the coroutine: `gather`, and `wait_for` before 3.12, make their own."""

    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            lock = client.lock(name)
            ways = [
                lambda: asyncio.wait_for(lock.acquire(), BOUND),
                lambda: asyncio.gather(lock.acquire()),
                lambda: asyncio.ensure_future(lock.acquire()),
                lambda: asyncio.get_running_loop().create_task(lock.acquire()),
                lambda: asyncio.shield(lock.acquire()),
                lambda: asyncio.wait_for(lock.__aenter__(), BOUND),
            ]
            for acquire in ways:
                await acquire()
                assert lock.count == 1
                assert lock.current.valid
                assert not await other.lock(name).acquire(blocking=False)
                await lock.release()
                assert lock.count == 0
            held = await asyncio.wait_for(lock.hold(), BOUND)
            # Re-entry, since it is this task's.
            assert await lock.acquire(blocking=False)
            await lock.release()
            await held.release()
            await asyncio.wait_for(lock.__aenter__(), BOUND)
            await asyncio.gather(lock.__aexit__(None, None, None))
            assert await other.lock(name).acquire(timeout=BOUND)
            # In vain, and nothing is left.
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(lock.acquire(), 0.02)
            assert lock.count == 0
            await other.lock(name).release()
            assert await asyncio.wait_for(lock.acquire(), BOUND)
            await lock.release()

    loop(main())


def test_a_coroutine_that_no_task_called_is_owned_by_the_task_that_runs_it(name):
    async def connect():
        return await aio.connect("memory:nobody")

    client = asyncio.run(connect())
    lock = client.lock(name)
    outside = lock.acquire()

    async def main():
        assert await outside
        assert lock.count == 1
        await lock.release()

    asyncio.run(main())
    assert inspect.iscoroutinefunction(lock.acquire) or sys.version_info < (3, 12)
    assert asyncio.iscoroutinefunction(lock.hold)
    asyncio.run(client.close())


def test_a_hold_to_come_is_entered_without_an_await(loop, url, name):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            lock = client.lock(name, lease=0.2, cancel_on_lost=True)
            async with client.lock(name).hold(timeout=BOUND) as hold:
                assert hold.valid
                # The same task's: it re-enters.
                assert await client.lock(name).acquire(blocking=False)
                await client.lock(name).release()
                with pytest.raises(fencelock.ContendedError):
                    async with other.lock(name).hold(blocking=False):
                        pass
            assert not hold.valid
            with pytest.raises(fencelock.LostError):
                async with lock.hold(timeout=BOUND):
                    await asyncio.sleep(3 * BOUND)
            for way in (asyncio.gather, asyncio.ensure_future, asyncio.shield):
                held = await way(other.lock(name).hold(timeout=BOUND))
                await (held[0] if isinstance(held, list) else held).release()
            with pytest.warns(RuntimeWarning, match="never awaited"):
                lock.hold()

    loop(main())


def test_locked_asks_nobody(loop, url, name):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            lock = client.lock(name)
            assert lock.locked() is False
            hold = await client.lock(name).hold()
            assert lock.locked() is True
            assert other.lock(name).locked() is False
            assert await other.lock(name).locked_anywhere()
            await hold.release()
            assert lock.locked() is False
            async with client.lock(name, owner="somebody"):
                assert lock.locked() is True
            async with client.lock(name, reentrant=False):
                assert lock.locked() is True
            assert lock.locked() is False

    loop(main())


def test_what_was_acquired_stays_when_its_object_is_collected(loop, url, name):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            if await client.lock(name).acquire(blocking=False):
                gc.collect()
                assert not await other.lock(name).acquire(blocking=False)
            assert client.lock(name).count == 1
            await client.lock(name).release()
            assert await other.lock(name).acquire(timeout=BOUND)
            await other.lock(name).release()
            with pytest.warns(ResourceWarning, match="was collected without a release"):
                await client.lock(name).hold()
            assert await other.lock(name).acquire(timeout=BOUND)

    loop(main())


@pytest.mark.parametrize("by", ["hold", "lock"])
@pytest.mark.parametrize("cancel_on_lost", [False, True])
def test_a_lock_released_within_its_with_is_an_error(loop, url, name, by, cancel_on_lost):
    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name, cancel_on_lost=cancel_on_lost)
            with pytest.raises(fencelock.NotHeldError):
                async with lock as hold:
                    await (hold if by == "hold" else lock).release()
                    assert lock.count == 0
                    assert lock.current is None
            await lock.acquire()
            async with lock as hold:
                await (hold if by == "hold" else lock).release()
                assert lock.count == 1
            with pytest.raises(KeyError):
                async with lock as hold:
                    await (hold if by == "hold" else lock).release()
                    raise KeyError(name)
            async with await lock.hold() as hold:
                await hold.release()
            assert not lock.locked()

    loop(main())


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_condition_of_asyncio(loop, url, name, reentrant):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            lock = client.lock(name, reentrant=reentrant)
            condition = asyncio.Condition(lock)
            with pytest.raises(RuntimeError):
                condition.notify()
            ready = []

            async def produce():
                async with condition:
                    ready.append(True)
                    condition.notify()

            async with condition:
                task = asyncio.ensure_future(produce())
                wait = condition.wait_for(lambda: ready)
                # Before 3.12 another task waits there, which does not own the lock.
                await (wait if reentrant else asyncio.wait_for(wait, BOUND))
                assert not await other.lock(name).acquire(blocking=False)
            await task
            assert await other.lock(name).acquire(timeout=BOUND)

    loop(main())
