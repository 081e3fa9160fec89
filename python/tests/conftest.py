"""The stores that the tests run on, and how they wait."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import fencelock

BOUND = 30.0
ZOOKEEPER = os.environ.get("FENCELOCK_TEST_ZK", "")
SHARED = ["sqlite", "redis", *(["zk"] if ZOOKEEPER else [])]
# What a session for a lease costs; docs/zookeeper.md has the list.
LACKING = {
    "zookeeper": {
        "leases",
        "owners",
        "certain history",
        "forked children",
        "upgrades",
    }
}
STORES = ["memory", *SHARED]
_numbers = itertools.count(1)


def able(store, what):
    """Whether a store, by its URL or its client, can do what not all can."""
    name = "zookeeper" if str(store).startswith("zk") else getattr(store, "store", "")
    return what not in LACKING.get(name, ())


def until(condition, what="the condition"):
    """Wait until a condition is met, within the bound of all tests."""
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end, f"{what} was not met within {BOUND:.0f} s"
        time.sleep(0.002)


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory):
    """A Redis server of our own."""
    program = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is missing")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        cwd=tmp_path_factory.mktemp("redis"),
        stdout=subprocess.DEVNULL,
    )

    def answers():
        assert server.poll() is None, "redis-server ended"
        try:
            with closing(socket.create_connection(("127.0.0.1", port), 1)) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False

    try:
        until(answers, "an answer of redis-server")
        yield port
    finally:
        server.kill()
        server.wait()


def store_url(kind, request):
    """Give the URL of a store, empty where it can be."""
    if kind == "memory":
        return f"memory:test-{next(_numbers)}"
    if kind == "sqlite":
        return f"sqlite:{request.getfixturevalue('tmp_path')}/locks.db"
    if kind == "redis":
        port = request.getfixturevalue("redis_port")
        return f"redis://127.0.0.1:{port}/{next(_numbers) % 15 + 1}"
    return ZOOKEEPER


@pytest.fixture(params=STORES)
def url(request):
    """Each store in turn."""
    return store_url(request.param, request)


@pytest.fixture(params=SHARED)
def shared_url(request):
    """Each store that processes share."""
    return store_url(request.param, request)


@pytest.fixture
def redis_url(request):
    """The Redis server's."""
    return store_url("redis", request)


@pytest.fixture(params=["asyncio", "readerless", "uvloop"])
def loop(request):
    """What runs a coroutine in each kind of loop in turn."""
    from loops import RUNNERS

    if request.param not in RUNNERS:
        pytest.skip("uvloop is missing")
    return RUNNERS[request.param]


@pytest.fixture
def name():
    """A lock's name that no other test has."""
    return f"test/{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def client(url):
    """A client of each store in turn."""
    with fencelock.connect(url) as client:
        yield client


@pytest.fixture
def sharing_url(url):
    """Each store that has read-write locks and semaphores."""
    with fencelock.connect(url) as client:
        if not (client.capabilities.shared and client.capabilities.permits):
            pytest.skip(f"{client.store} has neither: test_a_store_without_them_refuses")
    return url


@pytest.fixture
def sharing(sharing_url):
    """A client of each store that has read-write locks and semaphores."""
    with fencelock.connect(sharing_url) as client:
        yield client


@pytest.fixture
def other(url):
    """A second client of the same store."""
    with fencelock.connect(url) as client:
        yield client


@pytest.fixture
def run():
    """Run a program of Python in a process of its own and give its output."""

    def run(source, *arguments, status=0, env=None, python=sys.executable):
        here = Path(fencelock.__file__).parent.parent
        environment = {**os.environ, "PYTHONPATH": str(here), **(env or {})}
        ran = subprocess.run(
            [python, "-c", source, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=2 * BOUND,
            env=environment,
            check=False,
        )
        assert ran.returncode == status, f"status {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    return run


def assert_empty(client, prefix):
    """Nobody holds a lock that begins so, and nobody waits for one."""

    def empty():
        infos = [client.inspect(name) for name in client.list(prefix)]
        return not any(info and (info.holds or info.waiters) for info in infos)

    until(empty, "an empty store")
