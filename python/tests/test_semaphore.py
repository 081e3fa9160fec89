"""Semaphores of threads."""

import gc
import subprocess
import sys
import threading
import warnings

import pytest
from conftest import BOUND, until
from test_rwlock import begun, elsewhere, waiting

import fencelock


def test_permits_are_taken_and_given_back(sharing, other, name):
    mailers, theirs = sharing.semaphore(name, 3), other.semaphore(name, 3)
    assert (mailers.name, mailers.permits) == (name, 3)
    assert repr(mailers).startswith(f"<fencelock.Semaphore '{name}' permits=3 at")
    assert mailers.acquire()
    assert theirs.acquire(permits=2)
    assert mailers.available_permits() == theirs.available_permits() == 0
    assert not mailers.acquire(blocking=False)
    assert not mailers.acquire(timeout=0.02)
    with pytest.raises(fencelock.ContendedError):
        mailers.hold(blocking=False)
    with pytest.raises(TimeoutError):
        mailers.hold(timeout=0.02)
    holds = sharing.inspect(name).holds
    assert sorted((hold.mode, hold.permits) for hold in holds) == [("permits", 1), ("permits", 2)]
    theirs.release()
    assert mailers.available_permits() == 2
    with mailers.hold(permits=2, timeout=BOUND) as hold:
        assert hold.valid
        assert not hold.previous_abandoned
        assert not hold.reentry
        assert not theirs.acquire(blocking=False)
    mailers.release()
    with mailers as one, mailers as two:
        assert one.token < two.token
        assert mailers.available_permits() == 1
    assert mailers.available_permits() == 3


def test_never_more_than_there_are(sharing, other, name):
    inside, most = [], []

    def work(semaphore, count):
        for _ in range(20):
            with semaphore.hold(permits=count):
                inside.extend([0] * count)
                most.append(len(inside))
                del inside[:count]

    threads = [
        threading.Thread(target=work, args=(client.semaphore(name, 4), count), daemon=True)
        for client in (sharing, other)
        for count in (1, 2, 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * BOUND)
    assert len(most) == 120
    assert max(most) <= 4
    assert sharing.semaphore(name, 4).available_permits() == 4


def test_a_small_request_does_not_pass_a_larger_one(sharing, other, name):
    mine, theirs = sharing.semaphore(name, 3), other.semaphore(name, 3)
    hold = mine.hold(permits=2)
    large, came = begun(lambda: theirs.acquire(permits=3))
    until(lambda: [waiter.permits for waiter in sharing.inspect(name).waiters] == [3])
    assert not mine.acquire(blocking=False)
    small, also = begun(lambda: mine.acquire(timeout=BOUND))
    until(waiting(sharing, 1))
    hold.release()
    large.join(BOUND)
    assert came == [True]
    assert not also
    theirs.release()
    small.join(BOUND)
    assert also == [True]


def test_a_release_gives_back_this_threads_latest_or_else_anybodys(sharing, name):
    mailers = sharing.semaphore(name, 6)
    assert mailers.acquire(permits=3)
    assert elsewhere(lambda: mailers.acquire(permits=2))
    assert mailers.available_permits() == 1
    # The other thread's is later, but this one has one of its own.
    sharing.semaphore(name, 6).release()
    assert mailers.available_permits() == 4
    mailers.release()
    assert mailers.available_permits() == 6
    with pytest.raises(fencelock.NotHeldError, match="has taken no permits"):
        mailers.release()
    # What a `with` took is given back by its end, and nobody else's with it.
    with mailers.hold(), mailers as hold:
        assert elsewhere(lambda: mailers.acquire(permits=2))
        hold.release()
        assert mailers.available_permits() == 3
    assert mailers.available_permits() == 4
    with mailers:
        with pytest.raises(ValueError, match="body"):
            with mailers:
                raise ValueError("body")
        assert mailers.available_permits() == 3
    mailers.release()
    assert mailers.available_permits() == 6


def test_a_with_may_end_in_another_thread(sharing, name):
    mailers = sharing.semaphore(name, 1)
    mailers.__enter__()
    assert elsewhere(lambda: mailers.__exit__(None, None, None)) is None
    assert mailers.available_permits() == 1
    with pytest.raises(fencelock.NotHeldError):
        mailers.__exit__(None, None, None)


def test_numbers_that_disagree_or_cannot_be(sharing, other, name):
    for number in (0, -1, 1_000_001, 1 << 40):
        with pytest.raises(fencelock.InvalidArgumentError):
            sharing.semaphore(name, number)
    with pytest.raises(TypeError):
        sharing.semaphore(name, "3")
    mailers = sharing.semaphore(name, 3)
    for number in (0, -1, 4):
        with pytest.raises(fencelock.InvalidArgumentError):
            mailers.acquire(permits=number)
    with pytest.raises(TypeError):
        mailers.acquire(permits=1.5)
    with pytest.raises(fencelock.InvalidArgumentError):
        mailers.acquire(blocking=False, timeout=1)
    with mailers:
        with pytest.raises(fencelock.MisconfiguredError, match="3"):
            other.semaphore(name, 2).acquire()
        with pytest.raises(fencelock.MisconfiguredError):
            other.lock(name).acquire()
    with other.lock(name), pytest.raises(fencelock.MisconfiguredError):
        mailers.acquire()
    # Nobody holds or waits: the next one says how many there are.
    with other.semaphore(name, 2):
        assert other.semaphore(name, 2).available_permits() == 1


def test_a_semaphore_is_resized_while_it_is_used(sharing, other, name):
    mine, theirs = sharing.semaphore(name, 2), other.semaphore(name, 2)
    assert not mine.resize(3)
    with mine.hold(permits=2):
        thread, came = begun(lambda: theirs.acquire(timeout=BOUND))
        until(lambda: sharing.inspect(name).waiters)
        assert mine.resize(3)
        thread.join(BOUND)
        assert came == [True]
        with pytest.raises(fencelock.MisconfiguredError, match=r"has 3 permits .* says 2"):
            theirs.acquire()
        # Of fewer than are out, nobody loses any, and who wants more than there are is told.
        thread, came = begun(lambda: told(sharing.semaphore(name, 3), 3))
        until(lambda: sharing.inspect(name).waiters)
        assert sharing.semaphore(name, 3).resize(1)
        thread.join(BOUND)
        assert "3 permits were asked for" in came[0]
        assert "has 1 " in came[0]
        theirs.release()
        assert sharing.semaphore(name, 1).available_permits() == 0
        for number in (0, -1, 1_000_001):
            with pytest.raises(fencelock.InvalidArgumentError):
                mine.resize(number)
        with pytest.raises(TypeError):
            mine.resize("3")
    assert mine.acquire(permits=2)
    mine.release()
    with other.lock(name), pytest.raises(fencelock.MisconfiguredError):
        mine.resize(3)


def told(semaphore, permits):
    """Give what an acquire in vain is told."""
    with pytest.raises(fencelock.InvalidArgumentError) as raised:
        semaphore.acquire(timeout=BOUND, permits=permits)
    return str(raised.value)


def test_a_semaphore_that_adopts_follows_the_number_of_the_others(sharing, other, name):
    mine, theirs = sharing.semaphore(name, 4), other.semaphore(name, 2, adopt=True)
    assert theirs.permits == theirs.available_permits() == 2
    with mine:
        with theirs.hold(permits=2):
            assert theirs.available_permits() == 1
            assert not mine.acquire(blocking=False, permits=2)
            assert mine.resize(3)
            assert theirs.available_permits() == 0
            with pytest.raises(fencelock.ContendedError):
                theirs.hold(blocking=False)
        with theirs:
            assert theirs.available_permits() == 1
    # Nobody holds: its own number counts.
    with theirs, pytest.raises(fencelock.MisconfiguredError, match="2"):
        mine.acquire()
    with pytest.raises(fencelock.InvalidArgumentError):
        theirs.acquire(permits=3)


def test_one_of_several_holds_is_broken(sharing, other, name):
    mailers = sharing.semaphore(name, 3)
    one, two = mailers.hold(), mailers.hold(permits=2)
    seen = {hold.permits: hold for hold in other.inspect(name).holds}[2]
    broken = other.break_hold(name, seen.token, seen.hold)
    assert (broken.ended, broken.changed_hands) == (1, None)
    assert two.lost.wait(BOUND)
    assert two.lost.reason == "broken"
    with pytest.raises(fencelock.LostError, match="2 permits of the semaphore"):
        two.check()
    assert one.valid
    assert mailers.available_permits() == 2
    # It may be repeated.
    assert other.break_hold(name, seen.token, seen.hold).ended == 0
    one.release()
    with pytest.raises(fencelock.InvalidArgumentError, match="hold's id"):
        other.break_hold(name, 1, "x")
    with pytest.raises(TypeError):
        other.break_hold(name, 1, 1)


def test_lost_permits_are_told_to_who_had_them(sharing, other, name):
    short, long = sharing.semaphore(name, 2, lease=0.3), other.semaphore(name, 2)
    with long.hold() as kept:
        assert short.acquire()
        until(lambda: long.available_permits() == 1)
        with pytest.raises(fencelock.LostError):
            short.release()
        with pytest.raises(fencelock.LostError), short as hold:
            assert hold.lost.wait(BOUND)
        with sharing.semaphore(name, 2, lease=0.3, raise_on_lost=False) as hold:
            assert hold.lost.wait(BOUND)
            assert hold.lost.reason == "ended"
        assert kept.valid
        assert not kept.previous_abandoned
    with long as hold:
        # Permits leave nothing half done.
        assert hold.previous_abandoned is False


def test_a_killed_process_gives_its_permits_back(shared_url, name):
    with fencelock.connect(shared_url) as client:
        if not client.capabilities.permits:
            pytest.skip("the store has no semaphores")
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                (
                    "import fencelock, sys\n"
                    "client = fencelock.connect(sys.argv[1], lease=1)\n"
                    "client.semaphore(sys.argv[2], 3).acquire(permits=2)\n"
                    "print('has two', flush=True)\n"
                    "sys.stdin.read()\n"
                ),
                shared_url,
                name,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        mailers = client.semaphore(name, 3)
        with child:
            assert child.stdout.readline() == "has two\n"
            child.kill()
            child.wait()
            assert mailers.acquire(blocking=False)
            assert not mailers.acquire(blocking=False, permits=2)
            with mailers.hold(permits=2, timeout=BOUND):
                assert mailers.available_permits() == 0
            mailers.release()


def test_a_close_gives_all_back(sharing, other, name):
    mailers, theirs = sharing.semaphore(name, 2), other.semaphore(name, 2)
    assert mailers.acquire(permits=2)
    thread, came = begun(lambda: theirs.acquire(timeout=BOUND))
    until(waiting(other, 1))
    sharing.close()
    thread.join(BOUND)
    assert came == [True]
    with pytest.raises(fencelock.LostError):
        mailers.release()
    with pytest.raises(fencelock.ClosedError):
        mailers.acquire(blocking=False)


def test_what_was_acquired_needs_no_variable_and_a_hold_does(sharing, name):
    sharing.semaphore(name, 3).acquire()
    gc.collect()
    assert sharing.semaphore(name, 3).available_permits() == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        sharing.semaphore(name, 3).hold()
        gc.collect()
        until(lambda: sharing.semaphore(name, 3).available_permits() == 2)
    sharing.semaphore(name, 3).release()
    assert sharing.semaphore(name, 3).available_permits() == 3
    gc.collect()
    assert not sharing._taken.busy
    assert not sharing._taken._known


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_none_of_its_parents(run, redis_url, name):
    out = run(
        """
import os, sys, fencelock
url, name = sys.argv[1:]
mailers = fencelock.connect(url).semaphore(name, 2)
mailers.acquire()
child = os.fork()
if child == 0:
    try:
        mailers.acquire(blocking=False)
    except fencelock.ClosedError:
        own = fencelock.connect(url).semaphore(name, 2)
        os._exit(0 if own.acquire(blocking=False) and not own.acquire(blocking=False) else 1)
    os._exit(2)
print(os.waitpid(child, 0)[1])
mailers.release()
""",
        redis_url,
        name,
    )
    assert out == "0\n"
