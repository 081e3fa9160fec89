"""Forks, children, and the interpreter's end."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import BOUND, able, until

import fencelock

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def forked_url(shared_url):
    """Each store that a child of a connected process can connect to."""
    if not able(shared_url, "forked children"):
        pytest.skip("a forked child cannot connect: test_a_forked_child_is_refused")
    return shared_url


def test_a_forked_child_is_refused(run, shared_url, name):
    """Where it cannot connect it is told what to do, and the parent keeps what it holds."""
    if able(shared_url, "forked children"):
        pytest.skip("a forked child can connect: test_a_forked_child_has_nothing_of_its_parents")
    out = run(
        """
import os, sys, fencelock
url, name = sys.argv[1:]
client = fencelock.connect(url)
hold = client.lock(name).hold()
child = os.fork()
if child == 0:
    try:
        fencelock.connect(url)
        os._exit(1)
    except fencelock.UnsupportedError as error:
        os._exit(0 if "fork before the first connection" in str(error) else 2)
print(os.waitpid(child, 0)[1], hold.valid, hold.check() == hold.token)
hold.release()
print(client.lock(name).acquire(blocking=False))
""",
        shared_url,
        name,
    ).splitlines()
    assert out == ["0 True True", "True"]


def test_a_forked_child_has_nothing_of_its_parents(run, forked_url, name):
    """Both directions: the child's end harms not the parent, nor the parent's the child."""
    out = run(
        """
import os, sys, fencelock, gc
url, name = sys.argv[1:]
client = fencelock.connect(url)
lock = client.lock(name)
hold = lock.hold()
inner = client.lock(name + "-inner")
inner.acquire()
read, write = os.pipe()
child = os.fork()
if child == 0:
    said = []
    def check(what, condition):
        said.append(what if condition else f"NOT {what}")
    check("closed", client.closed and client.lock is not None)
    check("invalid", not hold.valid and hold.remaining == 0)
    for call in [lock.acquire, lambda: client.inspect(name), lambda: client.lock("x"), client.ping]:
        try:
            call()
            check("refused", False)
        except fencelock.ClosedError as error:
            check("refused", "fork" in str(error))
    try:
        hold.check()
    except fencelock.LostError as error:
        check("lost", "fork" in str(error))
    own = fencelock.connect(url)
    check("excluded", not own.lock(name).acquire(blocking=False))
    check("own id", own.id != client.id)
    with own.lock(name + "-child"):
        check("works", True)
    check("shared", fencelock.shared(url).id != client.id)
    del hold, lock, inner
    gc.collect()
    client.close()
    check("still excluded", not own.lock(name).acquire(blocking=False))
    os.write(write, ",".join(said).encode())
    # An end with all that it brings, atexit too.
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(os.read(read, 1000).decode())
print(hold.valid, client.inspect(name).holds != (), inner.count)
hold.release()
inner.release()
print(client.lock(name).acquire(blocking=False))
""",
        forked_url,
        name,
    ).splitlines()
    expected = "closed,invalid,refused,refused,refused,refused,lost,excluded,own id,works,shared"
    assert out == [expected + ",still excluded", "True True 1", "True"]


def _in_child(url, name, results):
    with fencelock.shared(url).lock(name + "-child"):
        results.put(("free", fencelock.shared(url).lock(name).acquire(blocking=False)))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(method, shared_url, name):
    if method == "fork" and not able(shared_url, "forked children"):
        pytest.skip("a forked child cannot connect: test_a_forked_child_is_refused")
    context = multiprocessing.get_context(method)
    results = context.Queue()
    with fencelock.shared(shared_url).lock(name) as hold:
        children = [
            context.Process(target=_in_child, args=(shared_url, name, results)) for _ in range(3)
        ]
        for child in children:
            child.start()
        for child in children:
            child.join(BOUND)
            assert child.exitcode == 0
        assert [results.get(timeout=BOUND) for _ in children] == [("free", False)] * 3
        assert hold.valid
    # What a child held at its end it gave back at once, without waiting for the lease.
    with fencelock.connect(shared_url) as client:
        assert client.lock(name + "-child").acquire(timeout=5)


HELD = """
import sys, threading, fencelock
client = fencelock.connect(sys.argv[1])
hold = client.lock(sys.argv[2]).hold()
hold.on_lost(lambda reason: None)
if sys.argv[3] == "daemon":
    other = fencelock.connect(sys.argv[1])
    thread = threading.Thread(target=other.lock(sys.argv[2]).acquire, daemon=True)
    thread.start()
    while not client.inspect(sys.argv[2]).waiters: pass
if sys.argv[3] == "event":
    threading.Thread(target=hold.lost.wait, daemon=True).start()
if sys.argv[3] == "aio":
    import asyncio
    from fencelock import aio
    async def main():
        global kept
        kept = await aio.connect(sys.argv[1])
        await kept.lock(sys.argv[2] + "-aio").acquire()
    asyncio.run(main())
print("ending")
if sys.argv[3] == "raise":
    raise SystemExit(3)
"""


@pytest.mark.parametrize("how", ["plain", "daemon", "event", "aio", "raise"])
def test_the_end_of_the_interpreter_releases(run, shared_url, name, how):
    out = run(HELD, shared_url, name, how, status=3 if how == "raise" else 0)
    assert out == "ending\n"
    with fencelock.connect(shared_url) as client:
        # Long before the lease of 30 s, and also for the daemon that may have got it.
        assert client.lock(name).acquire(timeout=10)
        assert client.lock(name + "-aio").acquire(timeout=10)


def test_the_end_is_bounded_when_the_store_is_gone(run, tmp_path_factory):
    """A server that no longer answers does not keep the process."""
    program = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is missing")
    folder = tmp_path_factory.mktemp("r")
    server = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(folder / "s"), "--save", ""],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    try:
        until((folder / "s").exists, "the socket")
        url = f"redis+unix://{folder / 's'}"
        out = run(
            "import fencelock, os, signal, sys\n"
            "client = fencelock.connect(sys.argv[1], request_timeout=1)\n"
            "hold = client.lock('x').hold()\n"
            "os.kill(int(sys.argv[2]), signal.SIGSTOP)\n"
            "print('ending')\n",
            url,
            server.pid,
        )
        assert out == "ending\n"
    finally:
        os.kill(server.pid, signal.SIGCONT)
        server.kill()
        server.wait()


def test_a_killed_holder_is_followed_after_its_lease(shared_url, name):
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import fencelock, sys, time\n"
                "client = fencelock.connect(sys.argv[1], lease=0.5)\n"
                "hold = client.lock(sys.argv[2]).hold()\n"
                "print('held', flush=True)\n"
                "time.sleep(600)\n"
            ),
            shared_url,
            name,
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(fencelock.__file__).parent.parent)},
    )
    assert child.stdout.readline() == b"held\n"
    child.kill()
    child.wait()
    child.stdout.close()
    with (
        fencelock.connect(shared_url) as client,
        client.lock(name).hold(timeout=BOUND) as hold,
    ):
        assert hold.previous_abandoned is True


def test_fork_while_threads_work(name):
    """A child of a busy process connects and works."""
    ended = threading.Event()
    client = fencelock.connect("memory:busy")

    def work():
        lock = client.lock(name)
        while not ended.is_set():
            with lock:
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    own = fencelock.connect("memory:own")
                    own.lock("x").acquire(timeout=BOUND)
                    own.close()
                    os._exit(0 if client.closed else 4)
                except BaseException:
                    os._exit(5)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
    options = {}
except ImportError:
    import _xxsubinterpreters as interpreters
    options = {}
import fencelock
code = '''
try:
    import fencelock
    text = "imported"
except ImportError as error:
    text = str(error)
import os
os.write(1, text.encode())
'''
try:
    made = interpreters.create("legacy")
except Exception:
    made = interpreters.create()
failed = interpreters.run_string(made, code)
if failed is not None:
    print(failed)
"""


def test_a_sub_interpreter_gets_a_clear_error(run):
    pytest.importorskip(
        "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters",
        reason="this Python makes no sub-interpreters",
    )
    out = run(SUBINTERPRETER)
    assert "sub-interpreter" in out, out
    assert "main interpreter" in out


GUNICORN = """
import os, fencelock
URL = os.environ["STORE"]
early = fencelock.shared(URL)          # in the master, before it forks
early.lock("boot").acquire(timeout=10)

def application(environ, start_response):
    client = fencelock.shared(URL)
    with client.lock("counter") as hold:
        text = f"{os.getpid()} {hold.token} {client.id != early.id}"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [text.encode()]
"""


def test_gunicorn_forks_before_it_serves(forked_url, tmp_path):
    pytest.importorskip("gunicorn")
    import http.client
    import socket

    (tmp_path / "shop.py").write_text(GUNICORN)
    address = tmp_path / "g"
    server = subprocess.Popen(
        [
            *(
                sys.executable,
                "-m",
                "gunicorn",
                "--preload",
                "--workers",
                "3",
                "--no-control-socket",
            ),
            *("--bind", f"unix:{address}", "--log-level", "error", "shop:application"),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "STORE": forked_url,
            "PYTHONPATH": str(Path(fencelock.__file__).parent.parent),
        },
    )

    def listens():
        # The file is there a moment before anybody listens.
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(address)) == 0

    def ask():
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(BOUND)
        connection.sock.connect(str(address))
        connection.request("GET", "/")
        answer = connection.getresponse().read().decode()
        connection.close()
        return answer

    try:
        until(lambda: listens() or server.poll() is not None, "the server's socket")
        answers = [ask().split() for _ in range(30)]
        tokens = [int(token) for _, token, _ in answers]
        assert tokens == sorted(set(tokens))
        assert all(own == "True" for _, _, own in answers)
    finally:
        server.terminate()
        assert server.wait(BOUND) == 0
    # The master released what it held at its end.
    with fencelock.connect(forked_url) as client:
        assert client.lock("boot").acquire(timeout=10)
