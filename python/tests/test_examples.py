"""The examples that users copy, run as they are."""

import doctest
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BOUND, until

import fencelock
from fencelock import _native

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples" / "python"
PACKAGE = HERE.parent


def load(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def environment(**more):
    paths = [str(Path(fencelock.__file__).parent.parent), str(EXAMPLES)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def test_fencing_in_sql(monkeypatch, url):
    assert load("fenced_sql", monkeypatch).main(url) == [True, False]


def test_fencing_in_redis(monkeypatch, redis_url):
    pytest.importorskip("redis")
    assert load("fenced_redis", monkeypatch).main(redis_url) == [True, False]


def test_the_flash_sale_sells_each_ticket_once(shared_url):
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "flash_sale.py", shared_url],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=4 * BOUND,
        check=True,
    )
    without, locked = ran.stdout.splitlines()[1:]
    assert locked == "with Fencelock: 60 sold"
    # Otherwise this would show nothing.
    assert int(without.split()[-2]) > 60


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_the_fastapi_endpoint_sells_the_last_ticket_once(monkeypatch, url):
    pytest.importorskip("fastapi")
    httpx = pytest.importorskip("httpx")
    import asyncio

    monkeypatch.setenv("STORE", url)
    shop = load("fastapi_shop", monkeypatch)

    async def main():
        transport = httpx.ASGITransport(shop.app)
        async with (
            shop.lifespan(shop.app),
            httpx.AsyncClient(transport=transport, base_url="http://shop") as http,
        ):
            answers = await asyncio.gather(*[http.post("/buy/last-ticket") for _ in range(20)])
            assert sorted(answer.status_code for answer in answers) == [200] + 19 * [409]
            locks = shop.app.state.locks
            async with await locks.lock("stock/x", reentrant=False).hold():
                await asyncio.sleep(0)
            assert not (await locks.inspect("stock/last-ticket") or _nobody()).waiters
            await locks.close()
            assert (await http.post("/buy/last-ticket")).status_code == 500

    asyncio.run(main())


class _nobody:
    waiters = ()


def test_the_celery_task_runs_once_at_a_time(monkeypatch, shared_url, redis_port):
    pytest.importorskip("celery")
    pytest.importorskip("redis")
    broker = f"redis://127.0.0.1:{redis_port}/15"
    monkeypatch.setenv("BROKER", broker)
    monkeypatch.setenv("STORE", shared_url)
    with fencelock.connect(shared_url) as client:
        # So long as this holds it, the workers try again and again.
        held = client.lock("bill/alice").hold()
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "-A", "celery_jobs", "worker"),
                *("--pool", "prefork", "--concurrency", "3", "--loglevel", "ERROR"),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            ],
            env=environment(BROKER=broker, STORE=shared_url, C_FORCE_ROOT="1"),
            stdout=subprocess.DEVNULL,
        )
        jobs = load("celery_jobs", monkeypatch)
        try:
            results = [jobs.bill.delay("alice") for _ in range(6)]
            until(lambda: any(result.state == "RETRY" for result in results), "a retry")
            held.release()
            tokens = [result.get(timeout=BOUND) for result in results]
            assert len(set(tokens)) == 6
            assert min(tokens) > held.token
        finally:
            worker.terminate()
            assert worker.wait(BOUND) == 0
            jobs.app.close()
        assert client.lock("bill/alice").acquire(timeout=10)


def test_the_examples_in_the_docstrings():
    modules = [
        importlib.import_module(f"fencelock.{name}" if name else "fencelock")
        for name in ["", "errors", "client", "aio", "aio.client", "aio.hold", "aio.lock"]
    ]
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in modules:
        for test in finder.find(module):
            runner.run(test)
    # The finder passes over what is native.
    parser = doctest.DocTestParser()
    for kind in (_native.Lock, _native.Hold, _native.Lost, _native.BaseHold):
        for member in [kind, *vars(kind).values()]:
            text = getattr(member, "__doc__", None) or ""
            name = getattr(member, "__qualname__", repr(member))
            runner.run(parser.get_doctest(text, {}, name, None, 0))
    assert runner.failures == 0
    assert runner.tries > 40


def test_the_examples_in_the_guide():
    guide = HERE.parent.parent / "docs" / "python.md"
    failures, tries = doctest.testfile(
        str(guide), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert failures == 0
    assert tries > 20


def test_every_public_name_is_documented():
    from fencelock import aio

    missing = []
    for kind in [
        *(getattr(fencelock, name) for name in fencelock.__all__ if name != "__version__"),
        *(getattr(aio, name) for name in aio.__all__),
    ]:
        members = vars(kind).items() if isinstance(kind, type) else []
        for name, member in [("", kind), *members]:
            if name.startswith("_") or not (callable(member) or hasattr(member, "__get__")):
                continue
            if not getattr(member, "__doc__", None):
                missing.append(f"{kind.__name__}.{name}")
    # Native methods that only the package calls.
    missing = [name for name in missing if not name.endswith(("_start", ".raise_on_lost"))]
    missing = [name for name in missing if not name.endswith((".per_owner", ".not_held"))]
    assert not missing
