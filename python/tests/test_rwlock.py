"""Read-write locks of threads."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import BOUND, able, until

import fencelock


def elsewhere(call):
    """Call in a thread of its own, and give what came of it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(BOUND)


def begun(call):
    """Begin a call in a thread of its own; gives the thread and where its result will be."""
    came = []
    thread = threading.Thread(target=lambda: came.append(call()), daemon=True)
    thread.start()
    return thread, came


def waiting(client, count):
    """Whether so many wait in a client."""
    return lambda: f"fencelock_waiting {count}\n" in client.metrics()


def test_a_store_without_them_refuses(client, name):
    can = client.capabilities
    for known, make in (
        (can.shared, lambda: client.rwlock(name)),
        (can.permits, lambda: client.semaphore(name, 1)),
    ):
        if known:
            assert make().name == name
            continue
        with pytest.raises(fencelock.UnsupportedError, match=client.store):
            make()


def test_readers_share_and_a_writer_is_alone(sharing, other, name):
    prices, theirs = sharing.rwlock(name), other.rwlock(name)
    with prices.reader_lock as read:
        with theirs.reader_lock.hold(blocking=False) as beside:
            assert beside.token > read.token
            assert elsewhere(lambda: prices.reader_lock.acquire(blocking=False))
        assert not theirs.writer_lock.acquire(blocking=False)
        assert theirs.writer_lock.locked()
        info = other.inspect(name)
        assert {hold.mode for hold in info.holds} == {"shared"}
        assert {hold.permits for hold in info.holds} == {None}
        # Where nothing is kept of a reader that has gone, the token is that of who holds.
        last = beside.token if able(other, "leases") else read.token
        assert max(hold.token for hold in info.holds) <= info.token == last
    # The thread that read and ended had released nothing.
    until(lambda: all(hold.client == sharing.id for hold in other.inspect(name).holds))
    sharing.close()
    with theirs.writer_lock as written:
        assert written.token > beside.token
        assert not written.previous_abandoned
        assert other.inspect(name).holds[0].mode == "exclusive"


def test_nobody_passes_who_waits(sharing, other, name):
    mine, theirs = sharing.rwlock(name), other.rwlock(name)
    order = []

    def take(side, word):
        with side as hold:
            order.append((word, hold.token))

    with mine.reader_lock as reads:
        wanted = threading.Event()
        reads.on_wanted(wanted.set)
        writer, _ = begun(lambda: take(theirs.writer_lock, "writer"))
        until(waiting(other, 1))
        until(lambda: len(sharing.inspect(name).waiters) == 1)
        assert sharing.inspect(name).waiters[0].mode == "exclusive"
        # Until its client has heard of the writer, others may join a reader. Then they do not,
        # neither by trying nor by waiting; but who reads may read again.
        assert wanted.wait(BOUND)
        assert not elsewhere(lambda: mine.reader_lock.acquire(blocking=False))
        assert mine.reader_lock.acquire(blocking=False)
        mine.reader_lock.release()
        reader, _ = begun(lambda: take(mine.reader_lock, "reader"))
        until(waiting(sharing, 1))
    writer.join(BOUND)
    reader.join(BOUND)
    assert [word for word, _ in order] == ["writer", "reader"]
    assert order[0][1] < order[1][1]


def test_re_entry_and_what_would_wait_for_itself(sharing, other, name):
    prices = sharing.rwlock(name)
    with prices.reader_lock, prices.reader_lock as again:
        assert again.reentry
        assert prices.reader_lock.count == 2
        assert prices.writer_lock.count == 0
        for wait in [{}, {"blocking": False}, {"timeout": BOUND}]:
            with pytest.raises(fencelock.WouldDeadlockError):
                prices.writer_lock.acquire(**wait)
        assert not other.inspect(name).waiters
    with prices.writer_lock as written, prices.reader_lock as read, prices.writer_lock as deep:
        assert written.token == read.token == deep.token
        assert not elsewhere(lambda: prices.reader_lock.acquire(blocking=False))
    assert other.rwlock(name).writer_lock.acquire(blocking=False)


def test_the_writing_side_is_the_lock_of_that_name(sharing, name):
    prices, lock = sharing.rwlock(name), sharing.lock(name)
    assert prices.name == lock.name == name
    assert prices.writer_lock.acquire()
    assert lock.count == 1
    lock.release()
    with pytest.raises(fencelock.NotHeldError):
        prices.writer_lock.release()
    # What one side has, the other does not release.
    sharing.rwlock(name).reader_lock.acquire()
    with pytest.raises(fencelock.NotHeldError):
        lock.release()
    with pytest.raises(fencelock.NotHeldError, match="the read side"):
        elsewhere(prices.reader_lock.release)
    prices.reader_lock.release()
    assert not lock.locked()
    assert "to read" in repr(prices.reader_lock)
    assert "to read" not in repr(prices.writer_lock)
    assert repr(prices).startswith("<fencelock.RWLock reader_lock=<unlocked")


def test_any_thread_releases_what_is_nobodys(sharing, name):
    reader = sharing.rwlock(name, reentrant=False).reader_lock
    assert reader.acquire()
    assert reader.acquire(blocking=False)
    assert elsewhere(reader.release) is None
    assert elsewhere(reader.release) is None
    assert not reader.locked()


def test_a_loss_is_told_to_the_reader_whom_it_concerns(sharing, other, name):
    short = sharing.rwlock(name, lease=0.3).reader_lock
    theirs = other.rwlock(name).reader_lock
    with theirs as kept:
        with pytest.raises(fencelock.LostError), short as hold:
            told = []
            hold.on_lost(told.append)
            assert hold.lost.wait(BOUND)
            until(lambda: told == ["ended"])
        assert kept.valid
        assert not kept.lost.is_set()
    with other.rwlock(name).writer_lock as written:
        # A reader leaves nothing half done.
        assert not written.previous_abandoned


def test_a_close_ends_what_the_client_reads_and_what_waits_in_it(sharing, other, name):
    mine, theirs = sharing.rwlock(name), other.rwlock(name)
    read, kept = mine.reader_lock.hold(), theirs.reader_lock.hold()
    came = []

    def write():
        try:
            with mine.writer_lock:
                came.append("wrote")
        except fencelock.FencelockError as error:
            came.append(type(error))

    writer, _ = begun(write)
    until(waiting(sharing, 1))
    sharing.close()
    writer.join(BOUND)
    assert came == [fencelock.ClosedError]
    assert read.lost.is_set()
    assert kept.valid
    kept.release()
    assert theirs.writer_lock.acquire(timeout=BOUND)


def test_a_writer_reads_on_and_a_lone_reader_writes(sharing, other, name):
    if not able(sharing, "upgrades"):
        pytest.skip("the store makes no reader a writer")
    mine, theirs = sharing.rwlock(name), other.rwlock(name)
    with mine.writer_lock as hold:
        written = hold.token
        reading, came = begun(lambda: theirs.reader_lock.hold(timeout=BOUND))
        until(lambda: len(sharing.inspect(name).waiters) == 1)
        hold.downgrade()
        assert hold.mode == "shared"
        reading.join(BOUND)
        (beside,) = came
        assert written < hold.token == hold.check()
        assert beside.token > written
        with pytest.raises(fencelock.ContendedError):
            hold.try_upgrade()
        with pytest.raises(fencelock.WouldDeadlockError):
            mine.writer_lock.acquire()
        read = hold.token
        beside.release()
        hold.try_upgrade()
        hold.try_upgrade()
        assert hold.mode == "exclusive"
        assert hold.token > max(read, beside.token)
        assert not theirs.reader_lock.acquire(blocking=False)
    with pytest.raises(fencelock.NotHeldError):
        hold.downgrade()
    with sharing.semaphore(name + "-permits", 2) as permit:
        assert permit.mode == "permits"
        with pytest.raises(fencelock.InvalidArgumentError):
            permit.downgrade()


def test_a_writer_reads_on_and_writers_wait(sharing, other, name):
    mine, theirs = sharing.rwlock(name), other.rwlock(name)
    with mine.writer_lock as hold:
        written = hold.token
        hold.downgrade()
        assert hold.mode == "shared"
        assert hold.token > written
        with theirs.reader_lock.hold(timeout=BOUND) as beside:
            assert beside.token > written
        assert not theirs.writer_lock.acquire(blocking=False)
    assert theirs.writer_lock.acquire(timeout=BOUND)


def test_each_level_keeps_its_mode(sharing, other, name):
    mine, theirs = sharing.rwlock(name), other.rwlock(name)
    assert mine.writer_lock.acquire()
    assert mine.writer_lock.acquire()
    # The outer level writes still.
    with pytest.raises(fencelock.ContendedError):
        mine.writer_lock.current.downgrade()
    mine.writer_lock.release()
    # The idiom of a downgrade: read within, and release the write.
    assert mine.reader_lock.acquire()
    assert not theirs.reader_lock.acquire(blocking=False)
    mine.writer_lock.release()
    assert theirs.reader_lock.acquire(timeout=BOUND)
    assert mine.reader_lock.current.mode == "shared"
    theirs.reader_lock.release()
    mine.reader_lock.release()
    assert theirs.writer_lock.acquire(timeout=BOUND)


def test_an_owner_reads_from_two_clients(sharing, other, name):
    if not able(sharing, "owners"):
        pytest.skip("the store knows no owners beyond the client")
    mine = sharing.rwlock(name, owner="trace-1")
    theirs = other.rwlock(name, owner="trace-1")
    with mine.reader_lock as first, theirs.reader_lock as second:
        assert first.valid
        assert second.valid
        with pytest.raises(fencelock.WouldDeadlockError):
            mine.writer_lock.hold(timeout=BOUND)
    with mine.writer_lock as first, theirs.reader_lock.hold(blocking=False) as second:
        assert first.token == second.token


def test_a_killed_reader_keeps_a_writer_out_for_its_lease(shared_url, name):
    with fencelock.connect(shared_url) as client:
        if not client.capabilities.shared:
            pytest.skip("the store has no read-write locks")
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                (
                    "import fencelock, sys\n"
                    "client = fencelock.connect(sys.argv[1], lease=1)\n"
                    "client.rwlock(sys.argv[2]).reader_lock.acquire()\n"
                    "print('reads', flush=True)\n"
                    "sys.stdin.read()\n"
                ),
                shared_url,
                name,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with child:
            assert child.stdout.readline() == "reads\n"
            prices = client.rwlock(name)
            with prices.reader_lock as kept:
                child.kill()
                child.wait()
                assert not elsewhere(lambda: prices.writer_lock.acquire(blocking=False))
                assert kept.valid
            with prices.writer_lock.hold(timeout=BOUND) as written:
                assert not written.previous_abandoned


def test_readers_never_see_half_of_a_write(sharing, other, name):
    pair, torn = [0, 0], []

    def read(prices):
        for _ in range(50):
            with prices.reader_lock:
                torn.append(pair[0] != pair[1])

    def write(prices):
        for _ in range(25):
            with prices.writer_lock:
                pair[0] += 1
                pair[1] += 1

    threads = [
        threading.Thread(target=work, args=(client.rwlock(name),), daemon=True)
        for client in (sharing, other)
        for work in (read, read, write)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * BOUND)
    assert pair == [50, 50]
    assert len(torn) == 200
    assert not any(torn)


def test_a_decorated_function_reads(sharing, name):
    @sharing.locked(name + "-{shop}", shared=True)
    def show(shop):
        with sharing.rwlock(f"{name}-{shop}", reentrant=False).reader_lock.hold(blocking=False):
            return [hold.mode for hold in sharing.inspect(f"{name}-{shop}").holds]

    assert set(show(7)) == {"shared"}


def test_a_condition_waits_with_the_read_side_given_up(sharing, name):
    prices = sharing.rwlock(name)
    condition = threading.Condition(prices.reader_lock)
    woken = []

    def wait():
        with condition:
            woken.append(condition.wait(BOUND))

    thread, _ = begun(wait)
    until(lambda: condition._waiters)
    with prices.writer_lock:
        pass
    with condition:
        condition.notify()
    thread.join(BOUND)
    assert woken == [True]
