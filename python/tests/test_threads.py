"""Threads: exclusion, the interpreter's lock, signals."""

import sys
import threading
import time

import pytest
from conftest import until

import fencelock


def test_16_threads_exclude_each_other(client, name):
    lock = client.lock(name)
    inside = total = 0
    tokens = []

    def work():
        nonlocal inside, total
        for _ in range(25):
            with lock as hold:
                inside += 1
                assert inside == 1
                tokens.append(hold.token)
                if len(tokens) % 10 == 0:
                    time.sleep(0)
                total += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == 16 * 25
    assert tokens == sorted(set(tokens))


def test_a_wait_lets_other_threads_run(client, name):
    lock = client.lock(name)
    counted = 0
    with lock:
        waiter = threading.Thread(target=lambda: lock.hold().release())
        waiter.start()
        until(lambda: "fencelock_waiting 1" in client.metrics(), "a waiter")
        # This thread would never get so far if the waiter kept the interpreter.
        for _ in range(1000):
            counted += 1
    waiter.join()
    assert counted == 1000


INTERRUPTED = """
import os, signal, sys, threading, time
import fencelock
client = fencelock.connect(sys.argv[1])
other = fencelock.connect(sys.argv[1])
held = other.lock("x").hold()
class Stop(Exception): pass
def stop(*_): raise Stop
signal.signal(signal.SIGUSR1, stop)
def send():
    while "fencelock_waiting 1" not in client.metrics(): time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGUSR1 if sys.argv[2] == "raise" else signal.SIGINT)
threading.Thread(target=send, daemon=True).start()
try:
    client.lock("x").acquire()
except (KeyboardInterrupt, Stop) as error:
    print(type(error).__name__)
held.release()
# Nobody is left in the queue.
print(client.lock("x").acquire(timeout=30), client.inspect("x").waiters)
"""


def test_ctrl_c_ends_a_wait_and_leaves_nothing(run, url):
    assert run(INTERRUPTED, url, "interrupt") == "KeyboardInterrupt\nTrue ()\n"


def test_a_signal_handler_that_raises_ends_a_wait(run, url):
    assert run(INTERRUPTED, url, "raise").startswith("Stop\n")


HANDLED = """
import os, signal, sys, threading, time
import fencelock
client = fencelock.connect(sys.argv[1])
other = fencelock.connect(sys.argv[1])
held = other.lock("x").hold()
mine = client.lock("y").hold()
def handle(*_):
    mine.release()
    with client.lock("z"):
        pass
    print("handled")
    client.close()
signal.signal(signal.SIGTERM, handle)
def send():
    while "fencelock_waiting 1" not in client.metrics(): time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=send, daemon=True).start()
try:
    client.lock("x").acquire()
except fencelock.ClosedError:
    print("closed")
"""


def test_a_signal_handler_may_use_the_client_that_is_waited_for(run, url):
    assert run(HANDLED, url) == "handled\nclosed\n"


STORM = """
import random, signal, sys, time, warnings
import fencelock
warnings.simplefilter("ignore", ResourceWarning)
class Stop(Exception): pass
armed = False
def handler(*_):
    global armed
    if armed:
        armed = False
        raise Stop
signal.signal(signal.SIGALRM, handler)
client = fencelock.connect("memory:")
sides = client.rwlock("x")
entered = {
    "lock": client.lock("x"),
    "reader": sides.reader_lock,
    "writer": sides.writer_lock,
    "semaphore": client.semaphore("x", 1),
}[sys.argv[1]]
stops = 0
for _ in range(100):
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 60e-6), 0.002)
        while True:
            with entered: pass
    except Stop:
        stops += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    end = time.monotonic() + 30
    while (info := client.inspect("x")) is not None and info.holds:
        if time.monotonic() > end:
            raise SystemExit(f"still held after {stops}: {info}")
        time.sleep(0.001)
print(stops)
"""

ENTERED = {
    "lock": lambda client, name: client.lock(name),
    "reader": lambda client, name: client.rwlock(name).reader_lock,
    "writer": lambda client, name: client.rwlock(name).writer_lock,
    "semaphore": lambda client, name: client.semaphore(name, 1),
}


@pytest.mark.parametrize("what", ENTERED)
def test_signal_handlers_that_raise_at_any_moment_leave_nothing_held(run, what):
    assert run(STORM, what) == "100\n"


@pytest.mark.parametrize("what", ENTERED)
def test_a_with_runs_no_python_before_its_body_or_after(client, name, what):
    # A signal's handler runs between two steps of Python: what was granted must be kept by then.
    entered, calls = ENTERED[what](client, name), []

    def told(frame, event, _arg):
        if event == "call":
            calls.append(frame.f_code.co_name)

    sys.setprofile(told)
    try:
        with entered:
            pass
        entered.acquire()
        entered.release()
    finally:
        sys.setprofile(None)
    assert calls == []


CONNECTING = """
import signal, sys, threading, os, socket, time
import fencelock
server = socket.create_server(("127.0.0.1", 0))
def send():
    server.accept()  # and never answers
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send, daemon=True).start()
try:
    fencelock.connect(f"redis://127.0.0.1:{server.getsockname()[1]}", connect_timeout=600)
except KeyboardInterrupt:
    print("interrupted")
sys.stdout.flush()
os._exit(0)
"""


def test_ctrl_c_ends_connecting(run):
    assert run(CONNECTING) == "interrupted\n"


@pytest.mark.skipif(
    not hasattr(sys, "_is_gil_enabled"), reason="this Python always has its global lock"
)
def test_the_extension_does_not_ask_for_the_global_lock(run):
    source = (
        "import sys; a = sys._is_gil_enabled(); import fencelock; print(a, sys._is_gil_enabled())"
    )
    before, after = run(source).split()
    assert before == after


def test_memory_is_steady(name):
    """Acquisitions leave nothing behind; a million of them in `make verify`."""
    import os

    rounds = int(os.environ.get("FENCELOCK_MEMORY_ROUNDS", "20000"))
    client = fencelock.connect("memory:steady")
    lock = client.lock(name)

    def work(count):
        for index in range(count):
            with lock as hold:
                if index % 100 == 0:
                    hold.on_lost(print)
                    assert not hold.lost.is_set()
            if index % 50 == 0:
                client.lock(f"{name}/{index % 7}").hold().release()

    work(rounds // 4)
    before = resident()
    work(rounds)
    grown = resident() - before
    assert grown < 4 << 20, f"{grown} bytes more after {rounds} acquisitions"


def resident():
    """How much memory the process has, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
