"""Locks of threads, on every store."""

import sys
import threading
from datetime import timedelta

import pytest
from conftest import able, until

import fencelock
from fencelock import errors


def test_a_hold_has_a_token_that_only_rises(client, name):
    lock = client.lock(name)
    tokens = []
    for _ in range(3):
        with lock as hold:
            assert hold.valid
            assert hold.name == lock.name == name
            assert 0 < hold.remaining <= 30
            assert hold.check() == hold.token
            assert lock.current.token == hold.token
            tokens.append(hold.token)
    assert tokens == sorted(set(tokens))
    assert not hold.valid
    assert lock.current is None


def test_the_thread_re_enters_and_others_wait(client, name):
    lock = client.lock(name)
    assert lock.acquire()
    assert lock.acquire(blocking=False)
    assert lock.count == 2
    with lock as inner:
        assert inner.reentry
        assert lock.count == 3
        assert lock.current.token == inner.token
    # Another object of the same lock.
    assert client.lock(name).acquire(timeout=0)
    assert lock.count == 3
    client.lock(name).release()
    seen = []
    thread = threading.Thread(
        target=lambda: seen.extend([lock.acquire(blocking=False), lock.acquire(timeout=0.05)])
    )
    thread.start()
    thread.join()
    assert seen == [False, False]
    lock.release()
    assert lock.locked()
    lock.release()
    with pytest.raises(fencelock.NotHeldError, match="does not hold it"):
        lock.release()


def test_only_the_holder_releases(client, name):
    lock = client.lock(name)
    failed = []
    with lock:

        def steal():
            try:
                lock.release()
            except RuntimeError as error:
                failed.append(error)

        thread = threading.Thread(target=steal)
        thread.start()
        thread.join()
        assert isinstance(failed[0], fencelock.NotHeldError)
        assert lock.locked()


def test_a_lock_that_is_not_re_entrant_is_anybodys_to_release(client, name):
    lock = client.lock(name, reentrant=False)
    assert lock.acquire()
    assert not lock.acquire(blocking=False)
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    assert lock.acquire(blocking=False)
    lock.release()


def test_two_clients_exclude_each_other(client, other, name):
    with client.lock(name) as first:
        assert other.lock(name).locked()
        with pytest.raises(fencelock.ContendedError) as contended:
            other.lock(name).hold(blocking=False)
        assert contended.value.retryable
        with pytest.raises(TimeoutError) as late:
            other.lock(name).hold(timeout=0.05)
        assert isinstance(late.value, fencelock.TimedOutError)
    with other.lock(name).hold() as second:
        assert second.token > first.token
        # Those who did not get it took a place in the queue between the two.
        known = (False,) if able(client, "certain history") else (False, None)
        assert second.previous_abandoned in known


def test_a_waiter_of_another_client_gets_it_at_the_release(client, other, name):
    lock = client.lock(name)
    wanted = threading.Event()
    tokens = []

    def wait():
        with other.lock(name) as hold:
            tokens.append(hold.token)

    with lock as hold:
        hold.on_wanted(wanted.set)
        thread = threading.Thread(target=wait)
        thread.start()
        assert wanted.wait(30)
        assert hold.wanted
    thread.join()
    assert tokens[0] > hold.token


def test_a_lease_ends_and_the_holder_is_told(client, other, name):
    with pytest.raises(fencelock.LostError), client.lock(name, lease=0.2) as hold:
        told = []
        hold.on_lost(told.append)
        assert hold.lost.wait(30)
        assert hold.lost.is_set()
        assert hold.lost.reason == "ended"
        until(lambda: told == ["ended"])
        assert not hold.valid
        assert hold.remaining == 0
        with pytest.raises(fencelock.LostError, match="acquire it again"):
            hold.check()
        assert other.lock(name).acquire(timeout=30)


def test_a_loss_is_not_raised_when_told_so(client, name):
    with client.lock(name, lease=0.1, raise_on_lost=False) as hold:
        assert hold.lost.wait(30)
    with client.lock(name, lease=0.1, raise_on_lost=False).hold() as hold:
        assert hold.lost.wait(30)


def test_what_the_body_raises_comes_before_the_loss(client, name):
    with pytest.raises(KeyError) as raised, client.lock(name, lease=0.1) as hold:
        hold.lost.wait(30)
        raise KeyError(name)
    notes = getattr(raised.value, "__notes__", ["was lost: before 3.11 there are no notes"])
    assert "was lost" in notes[0]


def test_extend_and_timedelta(client, name):
    with client.lock(name, lease=timedelta(seconds=1)) as hold:
        hold.extend(timedelta(minutes=1))
        # Never beyond the session, where that is the lease.
        long = 50 if able(client, "leases") else 15
        assert hold.remaining > long
        hold.extend(1)
        assert hold.remaining > long
        with pytest.raises(fencelock.InvalidArgumentError):
            hold.extend(0.001)
        with pytest.raises(TypeError):
            hold.extend("1s")


def test_max_hold_bounds_the_renewal(client, name):
    with client.lock(name, max_hold=0.2, raise_on_lost=False) as hold:
        assert hold.lost.wait(30)
        assert hold.lost.reason == "ended"


def test_a_released_hold_is_never_lost(client, name):
    hold = client.lock(name).hold()
    waited = []
    thread = threading.Thread(target=lambda: waited.append(hold.lost.wait()))
    thread.start()
    hold.release()
    thread.join()
    assert waited == [False]
    assert hold.lost.reason is None


def test_an_explicit_owner_travels_by_ticket(client, other, name):
    with client.lock(name, owner="trace-1").hold() as hold:
        client.lock(name, owner="trace-1").hold(timeout=5).release()
        if able(client, "owners"):
            assert other.lock(name, owner="trace-1").acquire(timeout=5)
            with other.attach(hold.ticket()) as joined:
                assert joined.token == hold.token
        else:
            assert not other.lock(name, owner="trace-1").acquire(blocking=False)
            with pytest.raises(fencelock.UnsupportedError):
                other.attach(hold.ticket())
        assert not other.lock(name, owner="trace-2").acquire(blocking=False)
    with client.lock(name + "-plain") as hold, pytest.raises(fencelock.InvalidArgumentError):
        hold.ticket()
    with pytest.raises(fencelock.InvalidArgumentError):
        other.attach("not a ticket")


def test_break_tells_the_holder_and_the_next(client, other, name):
    hold = client.lock(name).hold()
    seen = other.inspect(name).token
    kept = other.break_lock(name, seen - 1)
    assert (kept.ended, kept.changed_hands, bool(kept)) == (0, seen, False)
    broken = other.break_lock(name, seen)
    assert (broken.ended, broken.changed_hands, bool(broken)) == (1, None, True)
    assert hold.lost.wait(30)
    assert hold.lost.reason in ("broken", "gone")
    with other.lock(name).hold(timeout=30) as next_one:
        assert next_one.previous_abandoned is not False
    with pytest.raises(fencelock.LostError):
        hold.release()


def test_inspect_and_list(client, other, name):
    waiting = threading.Thread(target=lambda: other.lock(name).hold(timeout=30).release())
    with client.lock(name) as hold:
        waiting.start()
        until(lambda: client.inspect(name).waiters, "a waiter")
        info = client.inspect(name)
        assert (info.name, info.token, len(info.holds)) == (name, hold.token, 1)
        assert info.holds[0].client == client.id
        assert 0 < info.holds[0].expires_in <= info.holds[0].lease == 30
        assert info.waiters[0].client == other.id
        assert name in client.list(name)
        assert "LockInfo" in repr(info)
        assert client.id in repr(info.holds)
    waiting.join()
    assert client.inspect(name + "/never") is None


def test_inspect_counts_who_waits_within_a_client(client, other, name):
    waits = [
        threading.Thread(target=lambda: client.lock(name).hold(timeout=30).release())
        for _ in range(3)
    ]
    with client.lock(name):
        for thread in waits:
            thread.start()
        until(lambda: client.inspect(name).waiting == 3, "they wait")
        assert client.inspect(name).holds[0].local_waiters == 3
        assert client.inspect(name).waiters == ()
        # Another client knows what was said with the latest renewal, if the store keeps it.
        told = other.inspect(name).holds[0].local_waiters
        assert (told is None) is (client.store == "zookeeper")
    for thread in waits:
        thread.join()


def test_capabilities_are_those_of_the_store(client):
    can = client.capabilities
    assert can.store == client.store
    assert can.processes is (client.store != "memory")
    assert can.leases is can.owners is (client.store != "zookeeper")
    fields = ["store", "processes", "durable", "owners", "leases", "abandoned", "paths"]
    fields += ["shared", "permits"]
    assert {field for field in vars(type(can)) if not field.startswith("_")} == set(fields)
    shown = ", ".join(f"{field}={getattr(can, field)!r}" for field in fields)
    assert repr(can) == f"Capabilities({shown})"
    with pytest.raises(AttributeError):
        can.processes = True


def test_close_releases_and_says_so(url, other, name):
    client = fencelock.connect(url)
    hold = client.lock(name).hold()
    waiter = []

    def wait():
        try:
            client.lock(name).acquire()
        except fencelock.ClosedError as error:
            waiter.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: "fencelock_waiting 1" in client.metrics(), "a waiter")
    assert client.close() is False
    thread.join()
    assert waiter
    assert client.closed
    assert hold.lost.wait(30)
    assert hold.lost.reason == "closed"
    assert other.lock(name).acquire(timeout=30)
    with pytest.raises(fencelock.ClosedError):
        client.lock(name + "/new").acquire()


def test_close_gives_whether_all_was_released(url, name):
    client = fencelock.connect(url)
    client.lock(name).hold().release()
    assert client.close() is True
    assert client.close() is True
    client = fencelock.connect(url)
    hold = client.lock(name).hold()
    assert client.close(drain=0) is False
    assert hold.lost.wait(30)


@pytest.mark.parametrize("endless", [-1, None, float("inf")])
def test_an_endless_timeout_waits_for_ever(client, other, name, endless):
    lock, theirs = client.lock(name), other.lock(name)
    assert lock.acquire(timeout=endless)
    took = []
    waiter = threading.Thread(target=lambda: took.append(theirs.acquire(timeout=endless)))
    waiter.start()
    until(lambda: "fencelock_waiting 1" in other.metrics(), "the waiter")
    lock.release()
    waiter.join()
    assert took == [True]
    # The thread that had it is gone, and its lock with the client.
    assert other.close() is False


def refuses(client, name):
    try:
        client.lock(name, reentrant=False).hold(blocking=False).release()
    except fencelock.ClosedError:
        return True
    return False


def test_an_endless_drain_waits_for_the_holders(url, name):
    client = fencelock.connect(url)
    hold = client.lock(name).hold()
    ended = []
    drain = threading.Thread(target=lambda: ended.append(client.close(drain=float("inf"))))
    drain.start()
    until(lambda: refuses(client, name + "-new"), "that the drain has begun")
    assert not ended
    hold.release()
    drain.join()
    assert ended == [True]


def test_drain_lets_holders_finish(url, name):
    client = fencelock.connect(url)
    hold = client.lock(name).hold()
    assert client.close(drain=0.05) is False
    assert hold.lost.wait(30)
    client = fencelock.connect(url)
    hold = client.lock(name).hold(timeout=30)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(client.close(drain=30)))
    thread.start()
    until(lambda: refuses(client, name + "-new"), "that new owners are refused")
    hold.release()
    thread.join()
    assert ended == [True]


def test_the_decorator_names_the_lock_by_the_arguments(client, name):
    @client.locked(name + "/{order.number}/{kind}", lease=10)
    def ship(order, kind="parcel"):
        """Ship."""
        return client.inspect(f"{name}/{order.number}/{kind}").holds[0].lease

    order = type("Order", (), {"number": 7})()
    lease = 10 if able(client, "leases") else 30
    assert ship(order) == ship(order=order, kind="letter") == lease
    assert ship.__doc__ == "Ship."
    with pytest.raises(fencelock.InvalidArgumentError, match="order, kind"):
        client.locked("x-{nobody}")(ship)

    async def task():
        pass

    with pytest.raises(fencelock.InvalidArgumentError, match=r"fencelock\.aio"):
        client.locked("x")(task)

    def generator():
        yield

    async def async_generator():
        yield

    for later in (generator, async_generator):
        with pytest.raises(fencelock.InvalidArgumentError, match="within the body"):
            client.locked("x")(later)


def test_arguments_are_checked(client, name):
    lock = client.lock(name)
    for arguments in [
        {"blocking": False, "timeout": 1},
        {"timeout": -2},
        {"timeout": float("nan")},
    ]:
        with pytest.raises(ValueError, match="timeout"):
            lock.acquire(**arguments)
    with pytest.raises(OverflowError):
        lock.acquire(timeout=1e100)
    with pytest.raises(ValueError, match="explicit owner"):
        client.lock(name, owner="me", reentrant=False)
    for wrong in ["", "a\0b", "x" * 513]:
        with pytest.raises(fencelock.InvalidArgumentError):
            client.lock(wrong)
    with pytest.raises(fencelock.InvalidArgumentError):
        client.lock(name, lease=0.01).acquire()
    with pytest.raises(TypeError):
        client.lock(7)
    lone = "half of a pair: \ud83d"
    for call in [
        lambda: client.lock(lone),
        lambda: client.lock(name, owner=lone),
        lambda: client.inspect(lone),
        lambda: client.list(lone),
        lambda: client.break_lock(lone, 1),
        lambda: client.attach(lone),
        lambda: fencelock.connect("memory:", label=lone),
        lambda: fencelock.connect("memory:" + lone),
    ]:
        with pytest.raises(fencelock.InvalidArgumentError, match="lone surrogate"):
            call()
    for wrong in [0, -1, 1 << 80]:
        with pytest.raises(fencelock.InvalidArgumentError, match="limit"):
            client.list("", wrong)
    with pytest.raises(fencelock.InvalidArgumentError, match="token"):
        client.break_lock(name, -1)
    for wrong in [-1, float("-inf"), float("nan"), timedelta(seconds=-1)]:
        with pytest.raises(fencelock.InvalidArgumentError, match="drain"):
            client.close(drain=wrong)
    assert not client.closed


def test_options_are_checked():
    with pytest.raises(fencelock.InvalidArgumentError, match=r"scheme|URL|store"):
        fencelock.connect("carrier-pigeon://roof")
    with pytest.raises(TypeError):
        fencelock.connect("memory:", leese=1)
    with pytest.raises(TypeError, match="label"):
        fencelock.connect("memory:", label=7)
    with pytest.raises(fencelock.InvalidArgumentError, match="lease"):
        fencelock.connect("memory:", lease=-1)
    with pytest.raises(fencelock.InvalidArgumentError, match="max_waiters"):
        fencelock.connect("memory:", max_waiters=-1)
    with pytest.raises(TypeError):
        fencelock.connect(None)
    client = fencelock.connect("memory:", lease=timedelta(seconds=5), label="told")
    with client.lock("lease").hold() as hold:
        assert hold.remaining <= 5


def test_an_unreachable_store_is_a_connection_error():
    with pytest.raises(ConnectionError) as failed:
        fencelock.connect("redis://127.0.0.1:1", connect_timeout=0.2)
    assert isinstance(failed.value, fencelock.UnavailableError)
    assert failed.value.retryable


def test_every_code_has_its_class():
    from fencelock import _native

    table = {code: (kind, retryable) for code, kind, retryable, _ in _native.ERRORS}
    classes = {code: (kind.kind, kind.retryable) for code, kind in errors.BY_CODE.items()}
    assert classes == table
    for kind in errors.BY_CODE.values():
        assert getattr(fencelock, kind.__name__) is kind
        assert issubclass(kind, fencelock.FencelockError)


def test_shared_gives_one_client():
    assert fencelock.shared("memory:s") is fencelock.shared("memory:s")
    assert fencelock.shared("memory:s", label="x") is not fencelock.shared("memory:s")
    first = fencelock.shared("memory:s")
    first.close()
    assert not fencelock.shared("memory:s").closed
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(fencelock.shared("memory:many")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({client.id for client in found}) == 1
    assert not found[0].closed


def test_a_callback_that_raises_harms_nobody(client, name, monkeypatch):
    shown = []
    monkeypatch.setattr(threading, "excepthook", shown.append)
    hold = client.lock(name, lease=0.1).hold()
    hold.on_lost(lambda reason: 1 / 0)
    until(lambda: shown, "the exception hook's call")
    assert shown[0].exc_type is ZeroDivisionError
    late = []
    hold.on_lost(late.append)
    until(lambda: late == ["ended"])


def test_callbacks_go_on_after_one_that_exits(client, name, monkeypatch):
    def lose(lock, callback):
        hold = client.lock(lock).hold()
        hold.on_lost(callback)
        client.break_lock(lock, hold.token)
        return hold

    shown = []
    monkeypatch.setattr(threading, "excepthook", lambda args: shown.append(args.exc_type))
    first = lose(name + "/exits", lambda reason: sys.exit(1))
    until(lambda: shown == [SystemExit], "the exit")

    def broken_hook(_args):
        raise LookupError

    monkeypatch.setattr(threading, "excepthook", broken_hook)
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: shown.append(kind))
    second = lose(name + "/raises", lambda reason: 1 / 0)
    until(lambda: shown == [SystemExit, LookupError], "the failure of the hook")
    told = []
    third = lose(name + "/later", lambda reason: told.append(threading.current_thread().name))
    until(lambda: told == ["fencelock-callbacks"], "a later callback")
    # On a thread of the caller's own it is for the caller.
    for hold in (first, second, third):
        with pytest.raises(SystemExit):
            hold.on_lost(lambda reason: sys.exit(1))
