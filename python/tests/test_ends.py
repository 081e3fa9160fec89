"""What a loop, a thread or the interpreter leaves behind when it ends before its waits."""

import asyncio
import gc
import select
import threading

import pytest
from conftest import BOUND, until
from loops import NoReaders, uvloop

import fencelock
from fencelock import _native, aio

LOOPS = {"asyncio": asyncio.new_event_loop, "readerless": NoReaders}
if uvloop is not None:
    LOOPS["uvloop"] = uvloop.new_event_loop


@pytest.fixture(params=LOOPS)
def new_loop(request):
    """Each kind of loop in turn."""
    return LOOPS[request.param]


class BrokenError(Exception):
    """What the main coroutine raises while another task waits."""


def nobody_waits(client):
    return "fencelock_waiting 0\n" in client.metrics()


def leave_a_wait(loop, url, name):
    """Run a loop until its main coroutine raises, with a wait pending; gives client and task."""
    left = []

    async def main():
        client = await aio.connect(url)
        lock = client.lock(name)

        async def wait():
            await lock.acquire()

        left.extend([client, asyncio.ensure_future(wait())])
        while "fencelock_waiting 1\n" not in client.metrics():
            await asyncio.sleep(0.001)
        raise BrokenError

    with pytest.raises(BrokenError):
        loop.run_until_complete(main())
    return left


def test_a_loop_that_is_closed_takes_its_waits_with_it(new_loop, url, name):
    with fencelock.connect(url) as outside:
        held = outside.lock(name).hold()
        loop = new_loop()
        client, task = leave_a_wait(loop, url, name)
        loop.close()
        # The task and all that it refers to are still there.
        until(lambda: nobody_waits(client), "an empty queue")
        held.release()
        assert outside.lock(name).acquire(timeout=BOUND)
        assert not task.done()
        task._log_destroy_pending = False
        asyncio.run(client.close())


def test_a_grant_that_meets_the_end_of_its_loop_is_given_back(new_loop, url, name):
    """It lies in the mailbox when the loop is closed."""
    with fencelock.connect(url) as outside:
        held = outside.lock(name).hold()
        loop = new_loop()
        client, task = leave_a_wait(loop, url, name)
        held.release()
        until(lambda: client_holds(outside, client, name), "the grant")
        loop.close()
        assert outside.lock(name).acquire(timeout=BOUND)
        assert not task.done()
        task._log_destroy_pending = False
        asyncio.run(client.close())


def client_holds(outside, client, name):
    info = outside.inspect(name)
    return any(hold.client == client.id for hold in info.holds)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_loop_that_nobody_closes_takes_its_waits_with_it_at_its_collection(name):
    with fencelock.connect("memory:dropped") as outside:
        held = outside.lock(name).hold()
        kept = []

        def run():
            loop = asyncio.new_event_loop()
            client, task = leave_a_wait(loop, "memory:dropped", name)
            task._log_destroy_pending = False
            kept.append(client)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

        def gone():
            gc.collect()
            return nobody_waits(kept[0])

        until(gone, "an empty queue")
        held.release()
        assert outside.lock(name).acquire(timeout=BOUND)
        asyncio.run(kept[0].close())


def test_a_trio_run_that_fails_takes_its_waits_with_it(url, name):
    trio = pytest.importorskip("trio")
    with fencelock.connect(url) as outside:
        held = outside.lock(name).hold()
        left = []

        async def main():
            left.append(await aio.connect(url))
            async with trio.open_nursery() as nursery:

                async def wait():
                    await left[0].lock(name).acquire()

                nursery.start_soon(wait)
                while "fencelock_waiting 1\n" not in left[0].metrics():
                    await trio.sleep(0.001)
                raise BrokenError

        with pytest.RaisesGroup(BrokenError):
            trio.run(main)
        until(lambda: nobody_waits(left[0]), "an empty queue")
        held.release()
        assert outside.lock(name).acquire(timeout=BOUND)
        asyncio.run(left[0].close())


# Longer than the interpreter's end waits for it; the last words are written without a lock of
# Python's own.
SLOW_CALLBACK = """
import os, sys, threading, time, fencelock
client = fencelock.connect("memory:")
began = threading.Event()
def slow(reason):
    began.set()
    while True:
        time.sleep(0.01)
hold = client.lock("x").hold()
if sys.argv[1] == "later":
    hold.on_lost(slow)
    client.break_lock("x", hold.token)
else:
    client.break_lock("x", hold.token)
    hold.lost.wait(30)
    threading.Thread(target=hold.on_lost, args=(slow,), daemon=True).start()
assert began.wait(30)
os.write(1, b"ending")
"""

BUSY_LOOP = """
import asyncio, os, sys, threading, fencelock
from fencelock import aio
began = threading.Event()
def slow():
    began.set()
    while True:
        for _ in range(1000): pass
class Slow(asyncio.Future):
    def set_result(self, result):
        slow()
class Loop(asyncio.SelectorEventLoop):
    def create_future(self):
        return Slow(loop=self)
async def main():
    client = await aio.connect("memory:")
    hold = await client.lock("x").hold()
    asyncio.ensure_future(hold.lost.wait())
    await asyncio.sleep(0)
    asyncio.get_running_loop().__class__ = Loop
    asyncio.ensure_future(hold.lost.wait())
    await asyncio.sleep(0)
    hold.release()
    await asyncio.sleep(3600)
threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
assert began.wait(30)
os.write(1, b"ending")
"""


@pytest.mark.parametrize("when", ["later", "at once"])
def test_a_callback_that_outlives_the_interpreter_does_no_harm(run, when):
    assert run(SLOW_CALLBACK, when) == "ending"


def test_a_loop_that_outlives_the_interpreter_does_no_harm(run):
    assert run(BUSY_LOOP) == "ending"


MANY_WAITS = """
import os, sys, threading, fencelock
client = fencelock.connect("memory:")
held = client.lock("x").hold()
def wait(how):
    try:
        if how == 0: client.lock("x").acquire()
        elif how == 1: held.lost.wait()
        else:
            while True: client.lock(f"own-{how}").hold().release()
    except fencelock.FencelockError:
        pass
for number in range(40):
    threading.Thread(target=wait, args=(number % 3,), daemon=True).start()
os.write(1, b"ending")
"""


def test_threads_that_wait_or_work_at_the_end_do_no_harm(run):
    for _ in range(5):
        assert run(MANY_WAITS) == "ending"


def test_an_end_that_comes_before_its_binding_does_not_deafen_the_loop(name):
    """Nobody had bound anything yet when the loop looked: the next end wakes it all the same."""
    client = fencelock.connect("memory:early")
    box = _native.Mailbox()
    woken = select.poll()
    woken.register(box.fileno(), select.POLLIN)
    waits = object()
    hold = client.lock(name).hold()
    operation = hold.lost_start(box)
    client.close()
    assert woken.poll(BOUND * 1000)
    assert box.take(True) == []
    operation.bind(waits)
    assert woken.poll(BOUND * 1000), "the loop was not woken"
    assert [end[0] for end in box.take(True)] == [waits]
    with pytest.raises(fencelock.LostError):
        hold.release()
