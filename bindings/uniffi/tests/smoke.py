"""Whether the generated Python works. People want the package in python/, which is made by hand."""

import asyncio
import threading
from datetime import timedelta

import fencelock_uniffi as fencelock


class Told(fencelock.LossListener):
    def __init__(self):
        self.event = threading.Event()

    def lost(self, reason):
        self.reason = reason
        self.event.set()


def blocking(client):
    lock = client.lock("x")
    hold = lock.acquire()
    assert hold.is_valid() and hold.check() == hold.token()
    assert hold.remaining() > timedelta(seconds=1)
    try:
        lock.acquire(timedelta(0))
    except fencelock.FencelockError.Contended as error:
        assert str(error)
    else:
        raise AssertionError("it was held")
    token = fencelock.CancelToken()
    threading.Timer(0.05, token.cancel).start()
    try:
        lock.acquire(None, token)
    except fencelock.FencelockError.Cancelled:
        pass
    else:
        raise AssertionError("it was cancelled")
    told = Told()
    hold.on_lost(told)
    seen = client.inspect("x").token
    assert client.break_lock("x", seen - 1) == fencelock.Broken(ended=0, changed_hands=seen)
    assert client.break_lock("x", seen) == fencelock.Broken(ended=1, changed_hands=None)
    assert told.event.wait(30) and told.reason == fencelock.LossReason.BROKEN
    try:
        hold.release()
    except fencelock.FencelockError.Lost:
        pass
    else:
        raise AssertionError("it was lost")


async def asynchronous():
    connecting = fencelock.begin_connect("memory:smoke")
    await connecting.ended()
    client = connecting.client()
    lock = client.lock("y")
    holding = lock.begin_acquire()
    await holding.ended()
    hold = holding.hold()
    waiting = lock.begin_acquire()
    task = asyncio.create_task(waiting.ended())
    await asyncio.sleep(0)
    assert not task.done()
    await hold.release_async()
    await task
    waiting.hold().release()
    assert not await lock.is_locked_async()
    assert fencelock.error_facts(fencelock.ErrorKind.LOST).code == 5
    await client.shut_down_async()
    assert client.is_shut_down()


blocking(fencelock.connect("memory:smoke"))
asyncio.run(asynchronous())
print("the generated Python works")
