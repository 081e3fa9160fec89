"""Locks of tasks, under asyncio and uvloop."""

import asyncio
import gc
import random
import threading
from datetime import timedelta

import pytest
from conftest import BOUND, able, assert_empty, until
from loops import acquired, alive, wait_until, waiting

import fencelock
from fencelock import aio


def test_the_names_of_the_blocking_api(loop, url, name):
    async def main():
        async with await aio.connect(url, lease=timedelta(seconds=20)) as client:
            lock = client.lock(name)
            async with lock as hold:
                assert hold.valid
                assert hold.remaining <= 20
                assert lock.count == 1
                assert lock.current is hold
                assert await lock.locked_anywhere()
                assert await lock.acquire()
                await lock.release()
                assert hold.check() == hold.token
                await hold.extend(60)
                assert (await client.inspect(name)).token == hold.token
                assert name in await client.list(name)
            assert not await lock.locked_anywhere()
            assert await client.ping() > 1e9
            assert not client.closed
            assert client.store in url or client.store == "zookeeper"
            assert client.capabilities.store == client.store
            with pytest.raises(fencelock.NotHeldError):
                lock.release()
            hold = await lock.hold(timeout=5)
            assert (await client.break_lock(name, hold.token)).ended == 1
            assert await hold.lost.wait()
            with pytest.raises(fencelock.LostError):
                await hold.release()
        assert client.closed

    loop(main())


def test_tasks_are_served_in_order(loop, url, name):
    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name)
            order = []

            async def work(number):
                async with lock:
                    order.append(number)

            async with lock:
                tasks = []
                for number in range(20):
                    tasks.append(asyncio.ensure_future(work(number)))
                    await wait_until(waiting(client, number + 1))
            await asyncio.gather(*tasks)
            assert order == list(range(20))

    loop(main())


def test_500_tasks(loop, url, name):
    async def main():
        async with await aio.connect(url) as client:
            inside = 0
            tokens = {}

            async def work(number):
                nonlocal inside
                key = f"{name}/{number % 5}"
                async with client.lock(key) as hold:
                    inside += 1
                    assert hold.token > tokens.get(key, 0)
                    tokens[key] = hold.token
                    await asyncio.sleep(0)
                    assert tokens[key] == hold.token
                    inside -= 1

            await asyncio.gather(*[work(number) for number in range(500)])
            assert inside == 0

    before = threading.active_count()
    loop(main())
    assert threading.active_count() <= before + 1


def test_no_wait_costs_a_thread(name):
    def threads():
        with open("/proc/self/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("Threads:")).split()[1])

    async def main():
        async with await aio.connect("memory:threadless") as client:
            before = threads()
            async with client.lock(name):
                tasks = [asyncio.ensure_future(acquired(client.lock(name))) for _ in range(200)]
                await wait_until(waiting(client, 200))
                assert threads() <= before
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await wait_until(waiting(client, 0))

    asyncio.run(main())


def test_a_cancelled_wait_leaves_nothing(loop, url, name):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            hold = await other.lock(name).hold()
            task = asyncio.ensure_future(acquired(client.lock(name)))
            await wait_until(waiting(client, 1))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.lock(name).acquire(), 0.02)
            await hold.release()
            assert await other.lock(name).acquire(timeout=BOUND)

    loop(main())


def torture(loop, url, name, rounds):
    """Tasks are cancelled at random moments, and nobody may be left holding or waiting."""
    chance = random.Random(rounds)

    async def main():
        clients = [await aio.connect(url, claim=1) for _ in range(2)]
        inside = {}
        cancelled = finished = 0

        async def work(client, key):
            lock = client.lock(key)
            async with lock as hold:
                assert inside.setdefault(key, hold.token) == hold.token
                try:
                    await asyncio.sleep(chance.choice([0, 0, 0.0005]))
                finally:
                    if hold.valid:
                        assert inside[key] == hold.token
                    del inside[key]

        async def tried():
            nonlocal cancelled, finished
            client = chance.choice(clients)
            task = asyncio.ensure_future(work(client, f"{name}/{chance.randrange(3)}"))
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            await asyncio.sleep(chance.random() * 0.004)
            task.cancel()
            try:
                await task
                finished += 1
            except asyncio.CancelledError:
                cancelled += 1

        for _ in range(rounds // 50):
            await asyncio.gather(*[tried() for _ in range(50)])
        for client in clients:
            await wait_until(waiting(client, 0))
        for key in range(3):
            async with clients[0].lock(f"{name}/{key}"):
                pass
        return cancelled, finished

    cancelled, finished = loop(main())
    assert cancelled > rounds // 20
    assert finished > 0
    gc.collect()
    with fencelock.connect(url) as client:
        assert_empty(client, name)


def test_random_cancels_leave_the_store_empty(loop, url, name):
    import os

    torture(loop, url, name, int(os.environ.get("FENCELOCK_CANCELS", "1500")))


def test_a_result_that_meets_its_cancel_is_given_back(name):
    """The grant and the cancel arrive in one turn of the loop."""

    async def main():
        async with await aio.connect("memory:meet") as client:
            lock = client.lock(name, reentrant=False)
            for turns in range(6):
                hold = await lock.hold()
                task = asyncio.ensure_future(lock.hold())
                await wait_until(waiting(client, 1))
                hold.release()
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await (await task).release()
                except asyncio.CancelledError:
                    pass
                assert await lock.acquire(timeout=BOUND), turns
                await lock.release()

    asyncio.run(main())


def test_a_lost_lock_cancels_its_task_when_asked(loop, url, name):
    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name, lease=0.2, cancel_on_lost=True)
            with pytest.raises(fencelock.LostError) as lost:
                async with lock:
                    await asyncio.sleep(3 * BOUND)
            assert isinstance(lost.value.__cause__, asyncio.CancelledError)
            # The task goes on uncancelled.
            await asyncio.sleep(0)
            async with client.lock(name, cancel_on_lost=True):
                await asyncio.sleep(0)
            with pytest.raises(fencelock.InvalidArgumentError):
                client.lock(name, cancel_on_lost=True, raise_on_lost=False)

            async def stubborn():
                async with lock as hold:
                    while hold.valid:
                        try:
                            await asyncio.sleep(0.01)
                        except asyncio.CancelledError:
                            return "told"
                return None

            with pytest.raises(fencelock.LostError):
                await stubborn()

            async def outer():
                async with lock:
                    await asyncio.sleep(3 * BOUND)

            task = asyncio.ensure_future(outer())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    loop(main())


def test_a_lost_hold_cancels_its_body_when_the_lock_asked(loop, url, name):
    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name, lease=0.2, cancel_on_lost=True)
            with pytest.raises(fencelock.LostError) as lost:
                async with await lock.hold(timeout=BOUND):
                    await asyncio.sleep(3 * BOUND)
            assert isinstance(lost.value.__cause__, asyncio.CancelledError)
            # Lost before the body begins.
            hold = await lock.hold(timeout=BOUND)
            assert await hold.lost.wait()
            with pytest.raises(fencelock.LostError):
                async with hold:
                    await asyncio.sleep(3 * BOUND)
            # The task goes on uncancelled.
            await asyncio.sleep(0)
            async with await client.lock(name, cancel_on_lost=True).hold(timeout=BOUND) as hold:
                await asyncio.sleep(0)
            assert not hold.valid

    loop(main())


@pytest.mark.skipif(
    not hasattr(asyncio.Task, "uncancel"), reason="before 3.11 cancels are not counted"
)
def test_another_cancel_beside_that_of_the_loss_goes_on(name):
    async def main():
        async with await aio.connect("memory:cancels") as client:
            hold = await client.lock(name, lease=0.1, cancel_on_lost=True).hold()
            assert await hold.lost.wait()
            with pytest.raises(asyncio.CancelledError):
                async with hold:
                    asyncio.current_task().cancel()
            assert asyncio.current_task().uncancel() == 0

    asyncio.run(main())


def test_waits_for_the_loss_that_are_given_up_leave_nothing(loop, name):
    async def main():
        async with await aio.connect("memory:given-up") as client:
            async with client.lock(name) as hold:
                kept = asyncio.ensure_future(hold.lost.wait())
                await asyncio.sleep(0)
                before = alive(asyncio.Future)
                waits = [asyncio.ensure_future(hold.lost.wait()) for _ in range(100)]
                await asyncio.sleep(0)
                assert alive(asyncio.Future) >= before + 100
                for wait in waits:
                    wait.cancel()
                await asyncio.wait(waits)
                del wait, waits

                async def gone():
                    return alive(asyncio.Future) < before + 10

                await wait_until(gone)
                assert not kept.done()
            assert await kept is False

    loop(main())


def test_loss_is_told_in_the_loop(loop, url, name):
    async def main():
        async with await aio.connect(url) as client:
            lock = client.lock(name, lease=0.2, raise_on_lost=False)
            async with lock as hold:
                told = []
                hold.on_lost(lambda reason: told.append((reason, threading.get_ident())))
                assert await hold.lost.wait()
                assert hold.lost.reason == "ended"
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert told == [("ended", threading.get_ident())]
            hold = await client.lock(name).hold()
            wait = asyncio.ensure_future(hold.lost.wait())
            await asyncio.sleep(0)
            await hold.release()
            assert await wait is False

    loop(main())


def test_another_client_is_told_as_wanted(loop, url, name):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            hold = await client.lock(name).hold()
            wanted = asyncio.Event()
            hold.on_wanted(wanted.set)
            task = asyncio.ensure_future(other.lock(name).hold())
            await asyncio.wait_for(wanted.wait(), BOUND)
            hold.release()  # Not awaited: it goes on all the same.
            await (await task).release()

    loop(main())


def test_the_decorator(loop, url, name):
    async def main():
        async with await aio.connect(url) as client:

            @client.locked(name + "-{number}")
            async def ship(number):
                return await client.list(name)

            assert await ship(7) == [name + "-7"]
            with pytest.raises(fencelock.InvalidArgumentError):
                client.locked("x")(len)

            async def later():
                yield

            with pytest.raises(fencelock.InvalidArgumentError, match="within the body"):
                client.locked("x")(later)

    loop(main())


def test_attach(loop, url, name):
    async def main():
        async with await aio.connect(url) as client, await aio.connect(url) as other:
            async with await client.lock(name, owner="trace").hold() as hold:
                if not able(url, "owners"):
                    with pytest.raises(fencelock.UnsupportedError):
                        await other.attach(hold.ticket())
                    return
                async with await other.attach(hold.ticket()) as joined:
                    assert joined.token == hold.token
            with pytest.raises(fencelock.NotHeldError):
                await other.attach(hold.ticket())

    loop(main())


def test_threads_and_tasks_share_one_process(url, name):
    """A blocking client and an asynchronous one exclude each other."""
    counted = 0

    def thread():
        nonlocal counted
        with fencelock.connect(url) as client:
            for _ in range(50):
                with client.lock(name):
                    counted += 1

    async def main():
        nonlocal counted
        async with await aio.connect(url) as client:
            worker = asyncio.get_running_loop().run_in_executor(None, thread)
            for _ in range(50):
                async with client.lock(name):
                    counted += 1
            await worker

    asyncio.run(main())
    assert counted == 100


def test_one_client_in_many_loops_and_threads(url, name):
    async def connect():
        return await aio.connect(url)

    client = asyncio.run(connect())
    total = 0

    async def main():
        nonlocal total
        for _ in range(20):
            async with client.lock(name):
                total += 1

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == 80
    assert asyncio.run(client.close())


def test_a_loop_that_ends_with_waits_leaves_nothing(url, name):
    with fencelock.connect(url) as outside:
        held = outside.lock(name).hold()

        async def main():
            client = await aio.connect(url)
            for _ in range(10):
                asyncio.ensure_future(acquired(client.lock(name)))
            await wait_until(waiting(client, 10))
            return client

        client = asyncio.run(main())
        until(lambda: "fencelock_waiting 0\n" in client.metrics(), "an empty queue")
        held.release()
        assert outside.lock(name).acquire(timeout=BOUND)
        asyncio.run(client.close())


def test_outside_a_loop_it_says_so(name):
    async def connect():
        return await aio.connect("memory:outside")

    client = asyncio.run(connect())
    with pytest.raises(RuntimeError, match="no running event loop"):
        client.lock(name).release()
    with pytest.raises(RuntimeError, match="no running event loop"):
        client.ping().send(None)
    asyncio.run(client.close())
