"""What a lock of threads keeps: through its objects, its `with`, its conditions."""

import gc
import threading
import warnings
import weakref

import pytest

import fencelock


def test_a_hold_released_within_its_own_with_is_no_error(client, name):
    with client.lock(name).hold() as hold:
        hold.release()
        with pytest.raises(fencelock.NotHeldError):
            hold.release()
    assert not client.lock(name).locked()


@pytest.mark.parametrize("by", ["hold", "lock"])
def test_a_lock_released_within_its_with_is_an_error(client, name, by):
    """As with `threading.RLock`, whichever way it was released."""
    lock = client.lock(name)
    with pytest.raises(fencelock.NotHeldError), lock as hold:
        (hold if by == "hold" else lock).release()
        assert lock.count == 0
        assert lock.current is None
    assert not lock.locked()
    # An outer level is left instead, as there.
    lock.acquire()
    with lock as hold:
        (hold if by == "hold" else lock).release()
        assert lock.count == 1
    assert lock.count == 0
    assert not lock.locked()
    # What the body raised comes first.
    with pytest.raises(KeyError), lock as hold:
        (hold if by == "hold" else lock).release()
        raise KeyError(name)


def test_the_hold_of_an_acquire_may_be_released_by_itself(client, name):
    lock = client.lock(name)
    lock.acquire()
    lock.acquire()
    lock.current.release()
    assert lock.count == 0
    assert "count=0" in repr(lock)
    with pytest.raises(fencelock.NotHeldError):
        lock.release()


def test_what_was_acquired_stays_when_its_object_is_collected(client, other, name):
    if client.lock(name).acquire(blocking=False):
        gc.collect()
        assert not other.lock(name).acquire(blocking=False)
    # Any object of the same lock is it.
    lock = client.lock(name)
    assert lock.count == 1
    assert lock.current.valid
    assert client.lock(name, reentrant=False).count == 0
    with pytest.raises(fencelock.NotHeldError):
        client.lock(name, owner="somebody").release()
    client.lock(name).release()
    assert other.lock(name).acquire(timeout=30)
    other.lock(name).release()
    for options in [{"reentrant": False}, {"owner": "me"}, {"max_hold": 60}]:
        assert client.lock(name, **options).acquire(timeout=30)
        gc.collect()
        assert not other.lock(name).acquire(blocking=False)
        client.lock(name, **options).release()
    gone = weakref.ref(lock)
    del lock
    gc.collect()
    assert gone() is None


def test_a_hold_that_is_collected_is_released_loudly(client, other, name):
    with pytest.warns(ResourceWarning, match=f"a hold of the lock .{name}. .token") as told:
        client.lock(name).hold()
    assert told[0].filename == __file__
    assert other.lock(name).acquire(timeout=30)
    other.lock(name).release()
    with warnings.catch_warnings(record=True) as quiet:
        warnings.simplefilter("always")
        for end in ["release", "abandon"]:
            hold = client.lock(name).hold(timeout=30)
            getattr(hold, end)()
            del hold
        gc.collect()
    assert quiet == []


def test_what_a_client_holds_goes_with_it(url, other, name):
    client = fencelock.connect(url)
    client.lock(name).acquire()
    gone = [client]
    del client
    with pytest.warns(ResourceWarning, match="was collected without a release"):
        gone.clear()
    assert other.lock(name).acquire(timeout=30)


def test_a_condition_gives_the_lock_up_while_it_waits(client, other, name):
    """`threading.Condition` on a lock that is held more than once."""
    lock = client.lock(name)
    condition = threading.Condition(lock)
    with pytest.raises(RuntimeError, match="un-acquired"):
        condition.notify()
    ready = []

    def produce():
        with condition:
            # So it is free everywhere.
            ready.append(lock.count)
            condition.notify()

    with condition, lock:
        lock.acquire()
        lock.acquire()
        first = lock.current.token
        thread = threading.Thread(target=produce)
        thread.start()
        assert condition.wait_for(lambda: ready, timeout=30)
        thread.join()
        assert ready == [1]
        assert lock.count == 4
        assert lock.current.token > first
        assert not other.lock(name).acquire(blocking=False)
        lock.release()
        lock.release()
    assert lock.count == 0
    assert other.lock(name).acquire(timeout=30)


def test_a_condition_on_a_lock_that_is_not_re_entrant(client, name):
    condition = threading.Condition(client.lock(name, reentrant=False))
    ready = []

    def produce():
        with condition:
            ready.append(True)
            condition.notify_all()

    with condition:
        thread = threading.Thread(target=produce)
        thread.start()
        assert condition.wait_for(lambda: ready, timeout=30)
    thread.join()
