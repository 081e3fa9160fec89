"""A process that gevent has patched: greenlets wait, the others go on."""

import pytest
from conftest import able

pytest.importorskip("gevent")

GREENLETS = """
from gevent import monkey; monkey.patch_all()
import gc, gevent, sys, time, threading
import fencelock
url = sys.argv[1]
client = fencelock.connect(url)
other = fencelock.connect(url)
lock = client.lock("x")
total = inside = beats = 0

def work(number):
    global total, inside
    for _ in range(20):
        with lock as hold:
            inside += 1
            assert inside == 1 and hold.valid
            gevent.sleep(0)
            total += 1
            inside -= 1

def beat():
    global beats
    while True:
        beats += 1
        gevent.sleep(0.001)

beater = gevent.spawn(beat)
gevent.joinall([gevent.spawn(work, n) for n in range(10)], raise_error=True)
print(total)
held = other.lock("x").hold()
before = beats
print(lock.acquire(timeout=0.1), lock.acquire(blocking=False), beats > before + 5)
waiter = gevent.spawn(lock.acquire)
while not client.inspect("x").waiters: gevent.sleep(0.001)
waiter.kill()
thread = threading.Thread(target=lambda: lock.hold().release()); thread.start()
gevent.sleep(0.01)
held.release()
thread.join()
with lock as hold, lock as again:
    print(again.reentry, lock.count, lock.current.token == hold.token, lock.locked())
print(other.lock("x").acquire(timeout=10), client.inspect("x").waiters)
beater.kill()
short = client.lock("lost", lease=0.2, raise_on_lost=False)
with short as hold:
    told = []
    hold.on_lost(told.append)
    print(hold.lost.wait(10), hold.lost.reason)
    gevent.sleep(0.01)
    print(told)
with client.lock("given-up") as hold:
    for _ in range(100):
        assert not hold.lost.wait(0)
    def waits():
        gc.collect()
        return sum(type(each) is fencelock._gevent._Future for each in gc.get_objects())
    end = time.monotonic() + 30
    while waits() > 10 and time.monotonic() < end: gevent.sleep(0.002)
    print("waits left:", waits() > 10)
@client.locked("job-{n}")
def job(n): return n
print(job(3), client.ping() > 0)
try:
    lock.release()
except fencelock.NotHeldError:
    print("not held")
"""

EXPECTED = """200
False False True
True 2 True True
True ()
True ended
['ended']
waits left: False
3 True
not held
"""


def test_greenlets_wait_together(run, url):
    assert run(GREENLETS, url) == EXPECTED


SHARING = """
from gevent import monkey; monkey.patch_all()
import gevent, sys
import fencelock
client, other = fencelock.connect(sys.argv[1]), fencelock.connect(sys.argv[1])
prices, mailers = client.rwlock("prices"), client.semaphore("mailers", 3)
inside = most = readers = 0

def read():
    global readers
    with prices.reader_lock as hold:
        readers += 1
        while readers < 5: gevent.sleep(0.001)

gevent.joinall([gevent.spawn(read) for _ in range(5)], raise_error=True)
with prices.writer_lock as hold, prices.reader_lock as inner:
    print(readers, inner.token == hold.token, gevent.spawn(prices.reader_lock.acquire, False).get())
with prices.reader_lock:
    try:
        prices.writer_lock.acquire()
    except fencelock.WouldDeadlockError:
        print("would deadlock")

def send(semaphore):
    global inside, most
    for _ in range(5):
        with semaphore:
            inside += 1
            most = max(most, inside)
            gevent.sleep(0)
            inside -= 1

theirs = other.semaphore("mailers", 3)
gevent.joinall([gevent.spawn(send, each) for each in [mailers, theirs] * 4], raise_error=True)
print(1 <= most <= 3, mailers.acquire(permits=3), theirs.acquire(timeout=0.05))
waiter = gevent.spawn(theirs.acquire)
while not client.inspect("mailers").waiters: gevent.sleep(0.001)
waiter.kill()
gevent.spawn(mailers.release).get()
with theirs.hold(permits=2):
    print(mailers.available_permits(), client.inspect("mailers").waiters)
try:
    mailers.release()
except fencelock.NotHeldError:
    print("not held")
"""

CONVERTING = """
from gevent import monkey; monkey.patch_all()
import sys
import fencelock
client, other = fencelock.connect(sys.argv[1]), fencelock.connect(sys.argv[1])
prices = client.rwlock("prices")
with prices.writer_lock as hold:
    hold.downgrade()
    with other.rwlock("prices").reader_lock.hold(timeout=30):
        try:
            hold.try_upgrade()
        except fencelock.ContendedError:
            print(hold.mode)
    hold.try_upgrade()
    print(hold.mode)
"""

SHARED = """5 True False
would deadlock
True True False
1 ()
not held
"""


def test_greenlets_share(run, sharing_url):
    assert run(SHARING, sharing_url) == SHARED


def test_greenlets_convert(run, sharing_url):
    if not able(sharing_url, "upgrades"):
        pytest.skip("the store makes no reader a writer")
    assert run(CONVERTING, sharing_url) == "shared\nexclusive\n"


def test_asyncio_beside_gevent(run):
    """What is not patched stays as it is."""
    out = run(
        "import gevent, fencelock\n"
        "client = fencelock.connect('memory:')\n"
        "print(type(client.lock('x')) is fencelock.Lock)\n"
    )
    assert out == "True\n"
