"""Read-write locks and semaphores of tasks."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from conftest import BOUND, able, assert_empty
from loops import wait_until, waiting

import fencelock
from fencelock import aio


def test_readers_share_and_a_writer_is_alone(loop, sharing_url, name):
    async def main():
        async with (
            await aio.connect(sharing_url) as client,
            await aio.connect(sharing_url) as other,
        ):
            prices, theirs = client.rwlock(name), other.rwlock(name)
            assert prices.name == name
            assert isinstance(prices.reader_lock, aio.Lock)
            together = asyncio.Barrier(3) if hasattr(asyncio, "Barrier") else None
            tokens = []

            async def read(side):
                async with side as hold:
                    if together is not None:
                        # None of them goes on before all are in.
                        await asyncio.wait_for(together.wait(), BOUND)
                    tokens.append(hold.token)

            sides = [prices.reader_lock, prices.reader_lock, theirs.reader_lock]
            await asyncio.gather(*[asyncio.create_task(read(side)) for side in sides])
            async with prices.writer_lock as written:
                assert written.token > max(tokens)
                assert not await theirs.reader_lock.acquire(blocking=False)
                assert not await asyncio.create_task(tried(prices.reader_lock))
                async with prices.reader_lock.hold() as read_within:
                    assert read_within.token == written.token
            async with prices.reader_lock, prices.reader_lock:
                assert prices.reader_lock.count == 2
                with pytest.raises(fencelock.WouldDeadlockError):
                    await prices.writer_lock.acquire()
            assert "to read" in repr(prices.reader_lock)
            assert repr(prices).startswith("<fencelock.aio.RWLock reader_lock=<fencelock.aio.Lock")

    loop(main())


async def tried(lock):
    return await lock.acquire(blocking=False)


def test_nobody_passes_who_waits(loop, sharing_url, name):
    async def main():
        async with AsyncExitStack() as stack:
            # Clients of their own: within one, writers may follow each other for a moment.
            clients = [
                await stack.enter_async_context(await aio.connect(sharing_url)) for _ in range(6)
            ]
            order = []

            async def take(prices, word):
                async with prices.writer_lock if word == "w" else prices.reader_lock:
                    order.append(word)

            def queued(count):
                async def condition():
                    return len((await clients[0].inspect(name)).waiters) == count

                return condition

            async with clients[0].rwlock(name).reader_lock as reads:
                tasks, wanted = [], asyncio.Event()
                reads.on_wanted(wanted.set)
                for client, word in zip(clients[1:], "wrrwr"):
                    tasks.append(asyncio.create_task(take(client.rwlock(name), word)))
                    await wait_until(queued(len(tasks)))
                # Until its client has heard of a writer, others may join a reader.
                await asyncio.wait_for(wanted.wait(), BOUND)
                assert not await asyncio.create_task(tried(clients[0].rwlock(name).reader_lock))
            await asyncio.wait_for(asyncio.gather(*tasks), BOUND)
            assert "".join(order) == "wrrwr"

    loop(main())


def test_a_cancelled_reader_or_writer_lets_the_next_one_in(loop, sharing_url, name):
    async def main():
        async with (
            await aio.connect(sharing_url) as client,
            await aio.connect(sharing_url) as other,
        ):
            mine = client.rwlock(name, reentrant=False)
            theirs = other.rwlock(name, reentrant=False)
            async with mine.reader_lock as reads:
                wanted = asyncio.Event()
                reads.on_wanted(wanted.set)
                writer = asyncio.create_task(theirs.writer_lock.acquire())
                await asyncio.wait_for(wanted.wait(), BOUND)
                reader = asyncio.create_task(mine.reader_lock.hold())
                await wait_until(waiting(client, 1))
                # The writer goes: who waited behind it reads beside who reads already.
                writer.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await writer
                async with await asyncio.wait_for(reader, BOUND) as beside:
                    assert beside.valid
            async with mine.writer_lock:
                reader = asyncio.create_task(theirs.reader_lock.hold())
                await wait_until(waiting(other, 1))
                reader.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reader
            assert (await client.inspect(name)).waiters == ()

    loop(main())
    with fencelock.connect(sharing_url) as client:
        assert_empty(client, name)


def test_a_loss_cancels_the_reader_whom_it_concerns(loop, sharing_url, name):
    async def main():
        async with await aio.connect(sharing_url) as client:
            prices = client.rwlock(name, reentrant=False)
            short = client.rwlock(name, lease=0.3, cancel_on_lost=True, reentrant=False)
            async with prices.reader_lock as kept:
                with pytest.raises(fencelock.LostError):
                    async with short.reader_lock:
                        await asyncio.sleep(3 * BOUND)
                assert kept.valid
                assert not kept.lost.is_set()

    loop(main())


def test_a_writer_reads_on_and_a_lone_reader_writes(loop, sharing_url, name):
    if not able(sharing_url, "upgrades"):
        pytest.skip("the store makes no reader a writer")

    async def main():
        async with (
            await aio.connect(sharing_url) as client,
            await aio.connect(sharing_url) as other,
        ):
            async with client.rwlock(name).writer_lock as hold:
                written = hold.token
                await hold.downgrade()
                assert hold.mode == "shared"
                assert hold.token > written
                async with other.rwlock(name).reader_lock.hold(timeout=BOUND) as beside:
                    with pytest.raises(fencelock.ContendedError):
                        await hold.try_upgrade()
                await hold.try_upgrade()
                assert hold.mode == "exclusive"
                assert hold.token > beside.token
            with pytest.raises(fencelock.NotHeldError):
                await hold.try_upgrade()

    loop(main())


def test_permits(loop, sharing_url, name):
    async def main():
        async with (
            await aio.connect(sharing_url) as client,
            await aio.connect(sharing_url) as other,
        ):
            mailers, theirs = client.semaphore(name, 3), other.semaphore(name, 3)
            assert (mailers.name, mailers.permits) == (name, 3)
            inside = most = 0

            async def work(semaphore):
                nonlocal inside, most
                for _ in range(10):
                    async with semaphore:
                        inside += 1
                        most = max(most, inside)
                        await asyncio.sleep(0)
                        inside -= 1

            await asyncio.gather(*[work(mailers) for _ in range(4)], work(theirs), work(theirs))
            assert 1 <= most <= 3
            assert await mailers.acquire(permits=3)
            assert not await theirs.acquire(blocking=False)
            assert not await theirs.acquire(timeout=0.02)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.create_task(theirs.acquire()), 0.02)
            # Another task than acquired.
            await asyncio.create_task(released(mailers))
            assert await theirs.available_permits() == 3
            with pytest.raises(fencelock.NotHeldError):
                mailers.release()
            async with theirs.hold(permits=2) as hold:
                assert hold.valid
                assert await mailers.available_permits() == 1
            with pytest.raises(fencelock.InvalidArgumentError):
                await mailers.acquire(permits=4)
            with pytest.raises(fencelock.InvalidArgumentError):
                client.semaphore(name, 0)
            async with mailers as hold:
                await hold.release()
                with pytest.raises(fencelock.MisconfiguredError):
                    async with mailers, other.semaphore(name, 2):
                        pass
            assert repr(mailers).startswith(f"<fencelock.aio.Semaphore {name!r} permits=3 at")

    loop(main())
    with fencelock.connect(sharing_url) as client:
        assert_empty(client, name)


async def released(semaphore):
    await semaphore.release()


def test_a_cancelled_large_request_lets_the_small_ones_in(loop, sharing_url, name):
    async def main():
        async with await aio.connect(sharing_url) as client:
            mailers = client.semaphore(name, 3)
            async with mailers.hold(permits=2):
                large = asyncio.create_task(mailers.acquire(permits=3))
                await wait_until(waiting(client, 1))
                small = asyncio.create_task(mailers.acquire())
                await wait_until(waiting(client, 2))
                assert not await mailers.acquire(blocking=False)
                large.cancel()
                assert await asyncio.wait_for(small, BOUND)
                await mailers.release()
            assert await mailers.available_permits() == 3

    loop(main())


def test_a_semaphore_is_resized_and_one_of_its_holds_is_broken(loop, sharing_url, name):
    async def main():
        async with (
            await aio.connect(sharing_url) as client,
            await aio.connect(sharing_url) as other,
        ):
            mailers = client.semaphore(name, 2)
            assert not await mailers.resize(3)
            one = await mailers.hold()
            async with mailers.hold() as two:
                waits = asyncio.create_task(client.semaphore(name, 2).acquire(timeout=BOUND))

                async def queued():
                    return bool((await other.inspect(name)).waiters)

                await wait_until(queued)
                assert await mailers.resize(3)
                assert await waits
                with pytest.raises(fencelock.MisconfiguredError, match=r"has 3 .* says 2"):
                    await mailers.acquire()
                adopting = other.semaphore(name, 2, adopt=True)
                assert await adopting.available_permits() == 0
                assert not await adopting.acquire(blocking=False)
                seen = {hold.token: hold for hold in (await other.inspect(name)).holds}[one.token]
                assert (await other.break_hold(name, seen.token, seen.hold)).ended == 1

                async def lost():
                    return not one.valid

                await wait_until(lost)
                assert two.valid
                async with adopting:
                    assert await adopting.available_permits() == 0
                with pytest.raises(fencelock.LostError, match="1 permit of the semaphore"):
                    one.check()
            await mailers.release()
            with pytest.raises(fencelock.InvalidArgumentError):
                await mailers.resize(0)
            with pytest.raises(fencelock.InvalidArgumentError):
                await other.break_hold(name, 1, "x")

    loop(main())


def test_a_lost_permit_cancels_its_task(loop, sharing_url, name):
    async def main():
        async with await aio.connect(sharing_url) as client:
            short = client.semaphore(name, 2, lease=0.3, cancel_on_lost=True)
            with pytest.raises(fencelock.LostError):
                async with short:
                    await asyncio.sleep(3 * BOUND)
            assert await short.acquire()
            hold = await short.hold()
            assert await asyncio.wait_for(hold.lost.wait(), BOUND)
            with pytest.raises(fencelock.LostError):
                await short.release()
            assert await short.available_permits() == 2
            with pytest.raises(fencelock.InvalidArgumentError):
                client.semaphore(name, 2, cancel_on_lost=True, raise_on_lost=False)

    loop(main())


def test_decorated_functions_read_together(loop, sharing_url, name):
    async def main():
        async with await aio.connect(sharing_url) as client:
            both = asyncio.Event()
            inside = 0

            @client.locked(name, shared=True)
            async def read():
                nonlocal inside
                inside += 1
                if inside == 2:
                    both.set()
                await asyncio.wait_for(both.wait(), BOUND)

            await asyncio.gather(asyncio.create_task(read()), asyncio.create_task(read()))

    loop(main())


def test_trio(sharing_url, name):
    trio = pytest.importorskip("trio")

    async def main():
        async with await aio.connect(sharing_url) as client:
            prices, mailers = client.rwlock(name), client.semaphore(name + "-mailers", 2)
            inside, most = 0, 0

            async def read():
                async with prices.reader_lock:
                    await trio.sleep(0)

            async def write():
                async with prices.writer_lock:
                    await trio.sleep(0)

            async def send():
                nonlocal inside, most
                async with mailers:
                    inside += 1
                    most = max(most, inside)
                    await trio.sleep(0)
                    inside -= 1

            async with trio.open_nursery() as nursery:
                for work in [read, write, send, send] * 5:
                    nursery.start_soon(work)
            assert 1 <= most <= 2
            async with client.rwlock(name, reentrant=False).writer_lock:
                with trio.move_on_after(0.02) as scope:
                    await client.rwlock(name, reentrant=False).reader_lock.acquire()
                assert scope.cancelled_caught
            await mailers.acquire(permits=2)
            with trio.move_on_after(0.02) as scope:
                await mailers.acquire()
            assert scope.cancelled_caught
            await mailers.release()
            assert await mailers.available_permits() == 2

    trio.run(main)
    with fencelock.connect(sharing_url) as client:
        assert_empty(client, name)
