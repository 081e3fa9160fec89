"""A FastAPI endpoint that sells the last ticket once, on however many workers.

`STORE=redis://host uvicorn fastapi_shop:app --workers 4`
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request

import fencelock
from fencelock import aio

# In a real shop this is a database; its check of the token is what makes a late write harmless.
stock: dict[str, int] = {"last-ticket": 1}
seen: dict[str, int] = {}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Connect in each worker; at its end let running sales finish."""
    app.state.locks = await aio.connect(os.environ.get("STORE", "memory:shop"), label="shop")
    yield
    await app.state.locks.close(drain=10)


app = FastAPI(lifespan=lifespan)


@app.post("/buy/{item}")
async def buy(item: str, request: Request) -> dict[str, int]:
    """Buy one; 409 when none is left, 503 when too many wait or the store is away.

    A client that hangs up cancels the request, and with it the wait in the queue.
    """
    lock = request.app.state.locks.lock(f"stock/{item}", cancel_on_lost=True)
    try:
        async with await lock.hold(timeout=5) as hold:
            if stock.get(item, 0) == 0:
                raise HTTPException(409, "sold out")
            if hold.token < seen.get(item, 0):
                raise HTTPException(503, "try again")
            seen[item] = hold.token
            stock[item] -= 1
            return {"left": stock[item], "token": hold.token}
    except fencelock.FencelockError as error:
        raise HTTPException(503 if error.retryable else 500, str(error)) from error
