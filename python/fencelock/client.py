"""The client of a store, for threads."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from fencelock import _decorator, _gevent, _native, _process
from fencelock._stack import Stacks
from fencelock._taken import Home
from fencelock.errors import InvalidArgumentError
from fencelock.rwlock import RWLock
from fencelock.semaphore import Greenlets, Semaphore

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

    from fencelock._native import Broken, Capabilities, Hold, Lock, LockInfo

__all__ = ["Client", "connect", "shared"]

_F = TypeVar("_F", bound=Callable[..., Any])

_shared: dict[tuple[Any, ...], Client] = {}


def connect(
    url: str,
    *,
    lease: float | timedelta | None = None,
    claim: float | timedelta | None = None,
    request_timeout: float | timedelta | None = None,
    connect_timeout: float | timedelta | None = None,
    label: str | None = None,
    key_prefix: str | None = None,
    local_run_grants: int | None = None,
    local_run_time: float | timedelta | None = None,
    max_waiters: int | None = None,
) -> Client:
    """Connect to the store at `url` and wait until it has answered.

    `url` is `memory:`, `memory:name`, `sqlite:path`, `redis://host`, `rediss://host` and so on.
    Times are seconds or a `timedelta`. What is given here wins over the same option in the URL.

    Args:
        url: The store.
        lease: For how long a hold lasts unless it is renewed; renewed at a third of it.
        claim: For how long a waiter may be silent before it is passed over.
        request_timeout: How long to wait for one answer of the store.
        connect_timeout: How long to wait for the first.
        label: A word about this client that others see in `Client.inspect`.
        key_prefix: What the store's keys begin with, where the store has keys.
        local_run_grants: How often a lock passes on within this client while others wait.
        local_run_time: For how long it does.
        max_waiters: How many may wait in this client at once.

    Raises:
        InvalidArgumentError: The URL or an option cannot be used.
        UnsupportedError: This build does not have the store.
        MisconfiguredError: The store refuses, for instance because of the password.
        UnavailableError: The store did not answer within the connect timeout.

    >>> client = connect("memory:", lease=10, label="billing")
    >>> client.store
    'memory'
    >>> client.close()
    True
    """
    options = given(
        lease=lease,
        claim=claim,
        request_timeout=request_timeout,
        connect_timeout=connect_timeout,
        label=label,
        key_prefix=key_prefix,
        local_run_grants=local_run_grants,
        local_run_time=local_run_time,
        max_waiters=max_waiters,
    )
    return Client(_gevent.run(_native.connect, url, options))


def shared(url: str, **options: Any) -> Client:
    """Give this process's client of `url`, connecting when it is used for the first time.

    For servers that fork (gunicorn, Celery, multiprocessing): the child gets a client of its own.
    Takes the options of `connect`; other options are another client. A client that was closed is
    replaced.

    >>> shared("memory:jobs") is shared("memory:jobs")
    True
    """
    key = (url, *sorted(options.items()))
    client = _shared.get(key)
    if client is None or client.closed:
        client = connect(url, **options)
        # Of two threads that came at the same time, one gives its client up.
        kept = _shared.setdefault(key, client) if _shared.get(key) is None else _shared[key]
        if kept is not client:
            if kept.closed:
                _shared[key] = client
            else:
                client.close()
                client = kept
    return client


_process.in_child(_shared.clear)


def given(**options: Any) -> dict[str, Any]:
    """Leave out the options that were not given."""
    return {name: value for name, value in options.items() if value is not None}


class Client:
    """A connection to a store, for threads. Closing it releases what is held through it.

    A context manager. At the end of the interpreter it closes by itself. In a child made by `fork`
    its methods raise `ClosedError`: connect again there, or use `shared`.

    >>> client = connect("memory:")
    >>> with client.lock("orders/4711"):
    ...     client.inspect("orders/4711").holds[0].client == client.id
    True
    >>> client.close()
    True
    """

    __slots__ = ("__weakref__", "_native", "_stacks", "_taken")

    def __init__(self, native: _native.Client) -> None:
        """Not for users: see `connect`."""
        self._native = native
        self._stacks: Stacks[_gevent.Hold] = Stacks()
        self._taken: Home[Hold] = Home()
        _process.watch(self)

    def lock(
        self,
        name: str,
        *,
        lease: float | timedelta | None = None,
        max_hold: float | timedelta | None = None,
        owner: str | None = None,
        reentrant: bool = True,
        raise_on_lost: bool = True,
    ) -> Lock:
        """Give the lock `name`. Cheap, and asks the store nothing.

        Args:
            name: 1 to 512 bytes of UTF-8 without NUL.
            lease: Holds get this lease (seconds, 0.1 to 7 days), are not renewed, and end on time.
                Without it a hold is renewed until it is released.
            max_hold: A ceiling over the renewal: a hold ends so long after its grant.
            owner: Who acquires; without it the thread. Whoever shows the same text re-enters, from
                another thread, process or language.
            reentrant: False makes it a `threading.Lock`: acquiring again waits, also in the same
                thread, and any thread may release. Not together with `owner`.
            raise_on_lost: Whether the end of a `with` raises `LostError` when the hold was lost.

        Raises:
            InvalidArgumentError: The name or an option cannot be used.
            ClosedError: This is a forked child.

        >>> with connect("memory:") as client:
        ...     lock = client.lock("cache/rebuild")
        ...     lock.acquire(), lock.acquire(), lock.count
        (True, True, 2)
        """
        options = {
            "lease": lease,
            "max_hold": max_hold,
            "owner": owner,
            "reentrant": reentrant,
            "raise_on_lost": raise_on_lost,
        }
        return _gevent.lock(self._native, self._stacks, name, options)

    def rwlock(
        self,
        name: str,
        *,
        lease: float | timedelta | None = None,
        max_hold: float | timedelta | None = None,
        owner: str | None = None,
        reentrant: bool = True,
        raise_on_lost: bool = True,
    ) -> RWLock:
        """Give the read-write lock `name`. Cheap, and asks the store nothing.

        Its sides are `Lock`s: `reader_lock`, and `writer_lock`, which is `Client.lock(name)`. For
        the options and errors see there; with `reentrant=False` a read within a read may wait
        behind a writer that waits for the first.

        Raises:
            UnsupportedError: The store has none: see `Capabilities.shared`.

        >>> with connect("memory:") as client:
        ...     prices = client.rwlock("prices")
        ...     with prices.reader_lock, prices.reader_lock:
        ...         prices.reader_lock.count
        2
        """
        options = {
            "lease": lease,
            "max_hold": max_hold,
            "owner": owner,
            "reentrant": reentrant,
            "raise_on_lost": raise_on_lost,
        }
        reader = _gevent.lock(self._native, self._stacks, name, {**options, "mode": "shared"})
        return RWLock(reader, _gevent.lock(self._native, self._stacks, name, options))

    def semaphore(
        self,
        name: str,
        permits: int,
        *,
        adopt: bool = False,
        lease: float | timedelta | None = None,
        max_hold: float | timedelta | None = None,
        raise_on_lost: bool = True,
    ) -> Semaphore:
        """Give the semaphore `name` with so many permits. Cheap, and asks the store nothing.

        Args:
            name: As a lock's. It is a semaphore's or a lock's, not both at once.
            permits: How many there are, 1 to 1,000,000. All who use it name the same number:
                another is refused (`MisconfiguredError`) while anybody holds or waits.
            adopt: Whether the number of those who hold or wait counts instead, where it is another:
                for who cannot know of a `Semaphore.resize`. `permits` counts when nobody does, and
                is the most that one acquire takes.
            lease: As for `Client.lock`.
            max_hold: As for `Client.lock`.
            raise_on_lost: As for `Client.lock`.

        Raises:
            InvalidArgumentError: The name, the number or an option cannot be used.
            UnsupportedError: The store has none: see `Capabilities.permits`.
            ClosedError: This is a forked child.

        >>> with connect("memory:") as client:
        ...     with client.semaphore("mailers", 3) as hold:
        ...         client.inspect("mailers").holds[0].permits
        1
        """
        options = {"lease": lease, "max_hold": max_hold, "raise_on_lost": raise_on_lost}
        if _gevent.patched():
            greenlets = Greenlets(self._native, name, permits, adopt, options)
            return greenlets.share(self._taken.of(name))
        return Semaphore(self._native, name, permits, adopt, options)

    def locked(self, template: str, *, shared: bool = False, **options: Any) -> Callable[[_F], _F]:
        """Decorate a function so that it runs under a lock.

        `template` is the lock's name, in which `{parameter}` stands for an argument of the call.
        With `shared` it only reads, under the `reader_lock` of `Client.rwlock`. Takes the options
        of `Client.lock`.

        Raises:
            InvalidArgumentError: The template names no parameter of the function, or the function
                is a coroutine function, for which there is `fencelock.aio`, or a generator
                function, whose body runs after the call: take the lock within it.

        >>> client = connect("memory:")
        >>> @client.locked("order-{number}")
        ... def ship(number):
        ...     return client.lock(f"order-{number}").locked()
        >>> ship(7), client.lock("order-7").locked()
        (True, False)
        >>> client.close()
        True
        """

        def decorate(function: _F) -> _F:
            if inspect.iscoroutinefunction(function):
                text = "a coroutine function needs a client of fencelock.aio, whose waits await"
                raise InvalidArgumentError(text)
            _decorator.refuse_generator(function)
            name = _decorator.namer(template, function)

            @functools.wraps(function)
            def run(*args: Any, **kwargs: Any) -> Any:
                lock = name(*args, **kwargs)
                side = (
                    self.rwlock(lock, **options).reader_lock
                    if shared
                    else self.lock(lock, **options)
                )
                with side:
                    return function(*args, **kwargs)

            return run  # type: ignore[return-value]

        return decorate

    def attach(self, ticket: str) -> Hold:
        """Go on with a hold of an explicit owner that another thread, process or language has.

        The hold is this client's own, under the same token. `ticket` is from `Hold.ticket`.

        Raises:
            InvalidArgumentError: The ticket cannot be read.
            NotHeldError: The owner's hold with the ticket's token is over.
            UnsupportedError: The store's owners do not travel.
            UnavailableError: The store did not answer within the request timeout.

        >>> here, there = connect("memory:t"), connect("memory:t")
        >>> with here.lock("cart/42", owner="trace-8f3a") as hold:
        ...     with there.attach(hold.ticket()) as joined:
        ...         joined.token == hold.token
        True
        """
        return _gevent.hold(_gevent.run(self._native.attach, ticket))

    def inspect(self, name: str) -> LockInfo | None:
        """Give the state of a lock: holds, token, waiters in order. Changes nothing.

        None when the store knows nothing of it.

        Raises:
            UnavailableError: The store did not answer.
            ClosedError: The client was closed.
        """
        return _gevent.run(self._native.inspect, name)

    def list(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """Give the names of at most `limit` locks that begin with `prefix`.

        A lock that was used lately may be listed although nobody holds it.

        >>> with connect("memory:") as client, client.lock("shop/a"):
        ...     client.list("shop/")
        ['shop/a']
        """
        return _gevent.run(self._native.list, prefix, limit)

    def break_lock(self, name: str, token: int) -> Broken:
        """End the holds on a lock that were seen under `token`, whoever has them.

        The token is that of `inspect`, or of a hold. Who got the lock after it keeps it, so a break
        may be repeated; `changed_hands` is then the token under which it is held now.

        A holder that does not listen goes on believing in its hold until its validity ends: only
        fencing keeps its writes out.

        >>> client = connect("memory:")
        >>> hold = client.lock("stuck").hold()
        >>> client.break_lock("stuck", client.inspect("stuck").token)
        Broken(ended=1, changed_hands=None)
        >>> hold.lost.wait(10)
        True
        """
        return _gevent.run(self._native.break_lock, name, token)

    def break_hold(self, name: str, token: int, hold: str) -> Broken:
        """End one hold, such as a reader's, or that of some permits. The others stay.

        The token and the id are `token` and `hold` of one of `LockInfo.holds`. In all else as
        `break_lock`.

        Raises:
            InvalidArgumentError: `hold` is no hold's id.
            UnsupportedError: The store cannot end one of several.

        >>> client = connect("memory:")
        >>> one, two = (client.semaphore("stuck", 2).hold() for _ in range(2))
        >>> seen = client.inspect("stuck").holds[0]
        >>> client.break_hold("stuck", seen.token, seen.hold)
        Broken(ended=1, changed_hands=None)
        >>> one.lost.wait(10), two.valid
        (True, True)
        >>> two.release()
        """
        return _gevent.run(self._native.break_hold, name, token, hold)

    def ping(self) -> float:
        """Ask the store for its time, and give it in seconds since 1970."""
        return _gevent.run(self._native.ping)

    def close(self, drain: float | timedelta | None = None) -> bool:
        """Close the client: what waits is cancelled, what is held is lost and released.

        With `drain` (seconds, or infinity) it first waits for so long at the most until nothing is
        held and nobody waits any more; new owners are refused meanwhile. Closing again does
        nothing.

        Gives whether all was released: nothing was held or waited for when it closed, and the store
        has confirmed it. False is no failure to close.

        Raises:
            InvalidArgumentError: The drain is negative. The client is open then.
        """
        return _gevent.run(self._native.close, drain)

    @property
    def closed(self) -> bool:
        """Whether the client was closed, or belongs to the process that forked this one."""
        return self._native.closed

    @property
    def id(self) -> str:
        """The 16 hexadecimal digits under which the store knows this client."""
        return self._native.id

    @property
    def store(self) -> str:
        """The kind of store, such as `redis`."""
        return self._native.capabilities.store

    @property
    def capabilities(self) -> Capabilities:
        """What the store can and cannot do.

        >>> with connect("memory:") as client:
        ...     client.capabilities.processes
        False
        """
        return self._native.capabilities

    def metrics(self) -> str:
        """Give what the client has counted, in Prometheus' text format.

        >>> with connect("memory:") as client:
        ...     "fencelock_grants_total" in client.metrics()
        True
        """
        return self._native.metrics()

    def __enter__(self) -> Client:
        """Give the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()

    def __repr__(self) -> str:
        """Show the store and the id."""
        state = " closed" if self.closed else ""
        return f"<fencelock.Client {self.store} {self.id}{state}>"
