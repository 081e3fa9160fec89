"""The client of a store, for tasks."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from fencelock import _decorator, _native, _process
from fencelock._stack import Stacks
from fencelock._taken import Home
from fencelock.aio import _port
from fencelock.aio.hold import Hold
from fencelock.aio.lock import Lock
from fencelock.aio.rwlock import RWLock
from fencelock.aio.semaphore import Semaphore
from fencelock.client import given
from fencelock.errors import InvalidArgumentError

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

    from fencelock._native import Broken, Capabilities, LockInfo

__all__ = ["Client", "connect"]

_F = TypeVar("_F", bound=Callable[..., Any])


async def connect(
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
    """Connect to the store at `url`; for the options and errors see `fencelock.connect`.

    The client may be used in any loop and any thread of the process.
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
    port = _port.here()
    return Client(await _finish(port, _native.connect_start(port.box, url, options)))


async def _finish(port: _port.Port, started: Any) -> Any:
    return await port.wait(started) if type(started) is _native.Operation else started


class Client:
    """A connection to a store, for tasks. Closing it releases what is held through it.

    An async context manager. At the end of the interpreter it closes by itself. In a child made by
    `fork` its methods raise `ClosedError`: connect again there.
    """

    __slots__ = ("__weakref__", "_native", "_stacks", "_taken")

    def __init__(self, native: _native.Client) -> None:
        """Not for users: see `connect`."""
        self._native = native
        self._stacks: Stacks[Hold] = Stacks()
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
        cancel_on_lost: bool = False,
    ) -> Lock:
        """Give the lock `name`. Cheap, and asks the store nothing.

        Args:
            name: 1 to 512 bytes of UTF-8 without NUL.
            lease: Holds get this lease (seconds, 0.1 to 7 days), are not renewed, and end on time.
                Without it a hold is renewed until it is released.
            max_hold: A ceiling over the renewal: a hold ends so long after its grant.
            owner: Who acquires; without it the task. Whoever shows the same text re-enters, from
                another task, process or language.
            reentrant: False makes it an `asyncio.Lock`: acquiring again waits, also in the same
                task, and any task may release. Not together with `owner`.
            raise_on_lost: Whether the end of an `async with` raises `LostError` when the hold was
                lost.
            cancel_on_lost: Whether the body of an `async with`, of the lock or of its `hold()`, is
                cancelled when the hold is lost; the `async with` then ends in `LostError`.

        Raises:
            InvalidArgumentError: The name or an option cannot be used.
            ClosedError: This is a forked child.
        """
        return Lock(
            self._native,
            name,
            stacks=self._stacks,
            cancel_on_lost=cancel_on_lost,
            lease=lease,
            max_hold=max_hold,
            owner=owner,
            reentrant=reentrant,
            raise_on_lost=raise_on_lost,
        )

    def rwlock(
        self,
        name: str,
        *,
        lease: float | timedelta | None = None,
        max_hold: float | timedelta | None = None,
        owner: str | None = None,
        reentrant: bool = True,
        raise_on_lost: bool = True,
        cancel_on_lost: bool = False,
    ) -> RWLock:
        """Give the read-write lock `name`. Cheap, and asks the store nothing.

        Its sides are `Lock`s: `reader_lock`, and `writer_lock`, which is `Client.lock(name)`. For
        the options and errors see there.

        Raises:
            UnsupportedError: The store has none: see `Capabilities.shared`.
        """
        options: dict[str, Any] = {
            "stacks": self._stacks,
            "cancel_on_lost": cancel_on_lost,
            "lease": lease,
            "max_hold": max_hold,
            "owner": owner,
            "reentrant": reentrant,
            "raise_on_lost": raise_on_lost,
        }
        reader = Lock(self._native, name, mode="shared", **options)
        return RWLock(reader, Lock(self._native, name, **options))

    def semaphore(
        self,
        name: str,
        permits: int,
        *,
        adopt: bool = False,
        lease: float | timedelta | None = None,
        max_hold: float | timedelta | None = None,
        raise_on_lost: bool = True,
        cancel_on_lost: bool = False,
    ) -> Semaphore:
        """Give the semaphore `name` with so many permits. Cheap, and asks the store nothing.

        For the arguments and errors see `fencelock.Client.semaphore`, for `cancel_on_lost`
        `Client.lock`.
        """
        options = {
            "cancel_on_lost": cancel_on_lost,
            "lease": lease,
            "max_hold": max_hold,
            "raise_on_lost": raise_on_lost,
        }
        return Semaphore(self._native, name, permits, adopt, self._taken.of(name), options)

    def locked(self, template: str, *, shared: bool = False, **options: Any) -> Callable[[_F], _F]:
        """Decorate a coroutine function so that it runs under a lock.

        `template` is the lock's name, in which `{parameter}` stands for an argument of the call.
        With `shared` it only reads, under the `reader_lock` of `Client.rwlock`. Takes the options
        of `Client.lock`.

        Raises:
            InvalidArgumentError: The template names no parameter of the function, or it is no
                coroutine function, for which there is `fencelock.Client.locked`, or it is an async
                generator function, whose body runs after the call: take the lock within it.

        >>> import asyncio
        >>> from fencelock import aio
        >>> async def main():
        ...     async with await aio.connect("memory:") as client:
        ...         @client.locked("order-{number}")
        ...         async def ship(number):
        ...             return await client.list("order-")
        ...         return await ship(7)
        >>> asyncio.run(main())
        ['order-7']
        """

        def decorate(function: _F) -> _F:
            _decorator.refuse_generator(function)
            if not inspect.iscoroutinefunction(function):
                text = "only a coroutine function can await a lock; for others: fencelock.Client"
                raise InvalidArgumentError(text)
            name = _decorator.namer(template, function)

            @functools.wraps(function)
            async def run(*args: Any, **kwargs: Any) -> Any:
                lock = name(*args, **kwargs)
                side = (
                    self.rwlock(lock, **options).reader_lock
                    if shared
                    else self.lock(lock, **options)
                )
                async with side:
                    return await function(*args, **kwargs)

            return run  # type: ignore[return-value]

        return decorate

    async def attach(self, ticket: str) -> Hold:
        """Go on with a hold of an explicit owner that another task, process or language has.

        For the errors see `fencelock.Client.attach`.
        """
        port = _port.here()
        return Hold(await _finish(port, self._native.attach_start(port.box, ticket)), True)

    async def inspect(self, name: str) -> LockInfo | None:
        """Give the state of a lock; None when the store knows nothing of it. Changes nothing."""
        port = _port.here()
        info: LockInfo | None = await _finish(port, self._native.inspect_start(port.box, name))
        return info

    async def list(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """Give the names of at most `limit` locks that begin with `prefix`."""
        port = _port.here()
        names: list[str] = await _finish(port, self._native.list_start(port.box, prefix, limit))
        return names

    async def break_lock(self, name: str, token: int) -> Broken:
        """End the holds on a lock that were seen under `token`, whoever has them.

        See `fencelock.Client.break_lock`, also for its danger.
        """
        port = _port.here()
        broken: Broken = await _finish(port, self._native.break_start(port.box, name, token))
        return broken

    async def break_hold(self, name: str, token: int, hold: str) -> Broken:
        """End one hold, such as a reader's, or that of some permits. The others stay.

        See `fencelock.Client.break_hold`.
        """
        port = _port.here()
        started = self._native.break_hold_start(port.box, name, token, hold)
        broken: Broken = await _finish(port, started)
        return broken

    async def ping(self) -> float:
        """Ask the store for its time, and give it in seconds since 1970."""
        port = _port.here()
        return float(await _finish(port, self._native.ping_start(port.box)))

    async def close(self, drain: float | timedelta | None = None) -> bool:
        """Close the client: what waits is cancelled, what is held is lost and released.

        With `drain` (seconds, or infinity) it first waits for so long at the most until nothing is
        held and nobody waits any more; new owners are refused meanwhile. Closing again does
        nothing.

        Gives whether all was released: nothing was held or waited for when it closed, and the store
        has confirmed it. False is no failure to close.

        Raises:
            InvalidArgumentError: The drain is negative. The client is open then.
        """
        port = _port.here()
        return bool(await _finish(port, self._native.close_start(port.box, drain)))

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
        """What the store can and cannot do."""
        return self._native.capabilities

    def metrics(self) -> str:
        """Give what the client has counted, in Prometheus' text format."""
        return self._native.metrics()

    async def __aenter__(self) -> Client:
        """Give the client itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        await self.close()

    def __repr__(self) -> str:
        """Show the store and the id."""
        state = " closed" if self.closed else ""
        return f"<fencelock.aio.Client {self.store} {self.id}{state}>"
