"""A Celery task that never runs twice at a time for the same customer.

`STORE=redis://host celery -A celery_jobs worker`. Each process of the worker has a client of its
own, made at its first use: `fencelock.shared` never gives a child its parent's.
"""

from __future__ import annotations

import os

from celery import Celery, Task
from celery.signals import worker_process_shutdown

import fencelock

BROKER = os.environ.get("BROKER", "redis://localhost/0")
app = Celery("jobs", broker=BROKER, backend=BROKER)


def locks() -> fencelock.Client:
    """Give this process's client."""
    return fencelock.shared(os.environ.get("STORE", "memory:jobs"), label="celery")


@worker_process_shutdown.connect
def close(**_: object) -> None:
    """Give back what is held: such a process ends without Python's own farewell."""
    locks().close()


@app.task(bind=True, max_retries=20)
def bill(self: Task, customer: str) -> int:
    """Bill a customer, and give the fencing token that the bill was written under."""
    try:
        # Not waiting in the worker: the queue does that better.
        hold = locks().lock(f"bill/{customer}").hold(blocking=False)
    except fencelock.FencelockError as error:
        if not error.retryable:
            raise
        raise self.retry(exc=error, countdown=0.1) from error
    with hold:
        return hold.token
