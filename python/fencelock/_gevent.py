"""Waiting in a process that gevent has patched: the greenlet waits, the thread goes on.

There an owner is a greenlet, an acquire waits in gevent's loop for the client's mailbox, and what
is short or rare, such as `Client.inspect`, runs in gevent's thread pool.
"""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from fencelock import _native
from fencelock._callbacks import Call
from fencelock._ends import Reader, abandon, release
from fencelock._leave import leave
from fencelock._stack import Stack, Stacks
from fencelock.errors import ContendedError, FencelockError, NotHeldError, TimedOutError

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

_T = TypeVar("_T")

_owners = itertools.count(1)


def patched() -> bool:
    """Whether threads are greenlets in this process."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(
        monkey.is_module_patched("threading") or monkey.is_module_patched("_thread")
    )


def run(function: Callable[..., _T], *args: Any) -> _T:
    """Call a function that blocks, in the thread pool if greenlets would stand still."""
    if not patched():
        return function(*args)
    import gevent

    result: _T = gevent.get_hub().threadpool.apply(function, args)
    return result


def lock(
    client: _native.Client, stacks: Stacks[Hold], name: str, options: dict[str, Any]
) -> _native.Lock:
    """Give a lock for this process."""
    if not patched():
        return _native.Lock(client, name, **options)
    made = Lock(client, name, **options)
    made._stack = stacks.of(name, options.get("owner"), made.per_owner, made.mode)
    return made


def permits(
    client: _native.Client, name: str, numbers: tuple[int, int, bool], options: dict[str, Any]
) -> _native.Lock:
    """Give what takes so many of so many permits, or of others' number: each acquire is its own."""
    kind = Lock if patched() else _native.Lock
    return kind(client, name, mode=numbers, reentrant=False, **options)


def hold(made: _native.Hold) -> _native.Hold:
    """Give the same hold for greenlets, in a process that has them."""
    return Hold(made, made.raise_on_lost) if patched() else made


def owner() -> int:
    """Give the number of the greenlet."""
    import gevent

    current = gevent.getcurrent()
    try:
        number: int = current._fencelock_owner
    except AttributeError:
        number = current._fencelock_owner = next(_owners)
    return number


class _Future:
    """What a greenlet waits for."""

    __slots__ = ("result",)

    def __init__(self) -> None:
        from gevent.event import AsyncResult

        self.result = AsyncResult()

    def done(self) -> bool:
        return bool(self.result.ready())

    def set_result(self, result: Any) -> None:
        self.result.set(result)

    def set_exception(self, error: BaseException) -> None:
        self.result.set_exception(error)


class Port:
    """The mailbox of a thread's hub."""

    def __init__(self, hub: Any) -> None:
        self.box = _native.Mailbox()
        self._waiting = 0
        # As long as nobody waits, it does not keep the hub running.
        self._watcher = hub.loop.io(self.box.fileno(), 1, ref=False)
        self._watcher.start(Reader(self.box))

    @staticmethod
    def here() -> Port:
        """Give the port of this thread's hub."""
        import gevent

        hub = gevent.get_hub()
        try:
            port: Port = hub._fencelock_port
        except AttributeError:
            port = hub._fencelock_port = Port(hub)
        return port

    def wait(self, operation: Any) -> Any:
        """Wait for an operation. A greenlet that is killed meanwhile leaves nothing behind."""
        future = _Future()
        operation.bind(future)
        self._waiting += 1
        self._watcher.ref = True
        try:
            return future.result.get()
        except BaseException:
            if future.result.ready() and future.result.successful():
                abandon(future.result.get())
            else:
                operation.cancel()
            raise
        finally:
            self._waiting -= 1
            self._watcher.ref = self._waiting > 0

    def finish(self, started: Any) -> Any:
        """Give the result of what was started, waiting if it is an operation."""
        return self.wait(started) if type(started) is _native.Operation else started


class Lost(_native.Lost):
    """As `fencelock.Lost`, for greenlets."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the hold is lost; False when the timeout passed before."""
        import gevent

        port = Port.here()
        with gevent.Timeout(timeout, exception=False):
            return port.finish(self.lost_start(port.box)) is not None
        return self.is_set()


class Hold(_native.Hold):
    """As `fencelock.Hold`, for greenlets."""

    entered = False

    def release(self) -> None:
        """Release the lock."""
        port = Port.here()
        port.finish(release(self, port.box))

    def extend(self, lease: float | timedelta) -> None:
        """Set the lease from now on."""
        port = Port.here()
        port.finish(self.extend_start(port.box, lease))

    def downgrade(self) -> None:
        """Read from now on instead of writing."""
        port = Port.here()
        port.finish(self.downgrade_start(port.box))

    def try_upgrade(self) -> None:
        """Write from now on instead of reading, if nobody else holds the lock."""
        port = Port.here()
        port.finish(self.try_upgrade_start(port.box))

    @property
    def lost(self) -> Lost:
        """The event that the hold was lost."""
        return Lost(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock. Raises `LostError` when it was lost and the body raised nothing."""
        try:
            self.release()
        except NotHeldError:
            # Released within the body.
            pass
        except FencelockError as failed:
            leave(failed, error, self.raise_on_lost)

    def on_lost(self, callback: Callable[[str], object]) -> None:
        """Call `callback` in a greenlet of its own when the hold is lost."""
        self._spawn(self.lost_start, callback)

    def on_wanted(self, callback: Callable[[], object]) -> None:
        """Call `callback` in a greenlet of its own when another client waits."""
        self._spawn(self.wanted_start, lambda _reason: callback())

    @staticmethod
    def _spawn(start: Callable[[_native.Mailbox], Any], callback: Callable[[Any], object]) -> None:
        import gevent

        def tell(result: Any) -> None:
            if result is not None:
                gevent.spawn(callback, result)

        started = start(Port.here().box)
        if type(started) is _native.Operation:
            started.bind(Call(tell))
        else:
            tell(started)


class Lock(_native.Lock):
    """As `fencelock.Lock`, for greenlets."""

    _stack: Stack[Hold]

    def acquire(self, blocking: bool = True, timeout: float | None = -1) -> bool:
        """Acquire the lock; see `fencelock.Lock.acquire`."""
        hold = self._acquire(blocking, timeout, tries=True)
        if hold is None:
            return False
        self._stack.push(self._owner(), hold)
        return True

    def hold(self, blocking: bool = True, timeout: float | None = -1) -> Hold:
        """Acquire the lock and give the hold; see `fencelock.Lock.hold`."""
        hold = self._acquire(blocking, timeout, tries=False)
        assert hold is not None
        return hold

    def _acquire(self, blocking: bool, timeout: float | None, *, tries: bool) -> Hold | None:
        port = Port.here()
        try:
            started = self.acquire_start(port.box, self._owner(), blocking, timeout)
            return Hold(port.finish(started), self.raise_on_lost)
        except (ContendedError, TimedOutError):
            if tries:
                return None
            raise

    def release(self) -> None:
        """Release the greenlet's latest hold."""
        self._stack.take(self._owner(), self).release()

    def locked_anywhere(self) -> bool:
        """Whether anybody holds the lock."""
        return self.locked()

    def locked(self) -> bool:
        """Whether anybody holds the lock."""
        port = Port.here()
        return bool(port.finish(self.locked_start(port.box)))

    @property
    def current(self) -> Hold | None:
        """The greenlet's latest hold."""
        return self._stack.top(self._owner())

    @property
    def count(self) -> int:
        """How many holds the greenlet has by `acquire` or `with`."""
        return self._stack.count(self._owner())

    def __enter__(self) -> Hold:
        """Acquire the lock."""
        hold = self.hold()
        self._stack.push(self._owner(), hold)
        return hold

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the hold of this `with`."""
        hold = self._stack.leave(self._owner())
        if hold is None:
            leave(self.not_held(), error, self.raise_on_lost)
        else:
            hold.__exit__(kind, error, traceback)

    def _is_owned(self) -> bool:
        return self.count > 0

    def _release_save(self) -> list[tuple[int, bool]]:
        # As `threading.Condition` asks: altogether.
        saved = [(1, False)] * self.count
        for _ in saved:
            self.release()
        if not saved:
            raise self.not_held()
        return saved

    def _acquire_restore(self, saved: list[tuple[int, bool]]) -> None:
        for _ in saved:
            self.acquire()

    def _owner(self) -> int:
        return owner() if self.per_owner else 0
