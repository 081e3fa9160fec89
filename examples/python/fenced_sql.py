"""A table that refuses a write whose fencing token is older than one it has seen.

The check and the write are one statement, so that nothing can come between them. Any database has
it; this runs on SQLite. `python fenced_sql.py [URL]`
"""

from __future__ import annotations

import sqlite3
import sys

import fencelock


def make(database: sqlite3.Connection) -> None:
    """Make the table of accounts."""
    database.execute(
        "CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER, token INTEGER NOT NULL)"
    )
    database.execute("INSERT INTO account VALUES ('alice', 100, 0)")


def write(database: sqlite3.Connection, account: str, balance: int, token: int) -> bool:
    """Write a balance under a token; False when a later holder has written already."""
    with database:
        done = database.execute(
            "UPDATE account SET balance = ?, token = ? WHERE id = ? AND token <= ?",
            (balance, token, account, token),
        )
    return done.rowcount == 1


def main(url: str = "memory:") -> list[bool]:
    """Let a holder that was paused too long write after its successor."""
    database = sqlite3.connect(":memory:")
    make(database)
    client, other = fencelock.connect(url), fencelock.connect(url)
    paused = client.lock("account/alice", lease=0.2).hold()
    # The lease ends while this holder does nothing, and another gets the lock.
    with other.lock("account/alice") as hold:
        written = [write(database, "alice", 150, hold.token)]
    # It wakes up and does not know yet: the table does.
    written.append(write(database, "alice", 90, paused.token))
    client.close()
    other.close()
    database.close()
    return written


if __name__ == "__main__":
    first, late = main(*sys.argv[1:])
    print("the holder wrote:", first)
    print("the one that came too late wrote:", late)
