"""A flash sale: several processes with several threads each sell the same few tickets.

Without a lock tickets are sold twice; with one, never. `python flash_sale.py [URL]`, where URL is a
store that processes share (without one: a SQLite file).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import fencelock

PROCESSES, THREADS, TICKETS = 3, 4, 60


class Stock:
    """The tickets that are left, in two text files that know nothing of locks.

    `stock` says LEFT NEWEST: how many are left, and the highest token that has written. `sales` has
    a line for each sale, SELLER TOKEN FROM TO, with times in microseconds.
    """

    def __init__(self, folder: str, seller: str = "python") -> None:
        self.file = Path(folder, "stock")
        self.sales = Path(folder, "sales")
        self.seller = seller

    def fill(self) -> None:
        """Put all tickets on sale."""
        self.file.write_text(f"{TICKETS} 0\n")

    def read(self) -> tuple[int, int]:
        """Give how many are left, and the highest token that has written."""
        left, newest = self.file.read_text().split()
        return int(left), int(newest)

    def sell(self, token: int | None) -> bool:
        """Sell one ticket: read, think, write. Refuses a token below one that has written."""
        begun = time.monotonic_ns() // 1000
        left, _ = self.read()
        if left == 0:
            return False
        time.sleep(0.001)
        _, newest = self.read()
        if token is not None and token < newest:
            message = f"token {token} comes after {newest}"
            raise RuntimeError(message)
        with self.sales.open("a") as sales:
            sales.write(f"{self.seller} {token or 0} {begun} {time.monotonic_ns() // 1000}\n")
        temporary = self.file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        temporary.write_text(f"{left - 1} {token or 0}\n")
        temporary.replace(self.file)
        return True


def seller(url: str | None, folder: str, sold: multiprocessing.SimpleQueue[int]) -> None:
    """Sell with several threads until nothing is left."""
    stock = Stock(folder)
    lock = fencelock.shared(url).lock("flash-sale") if url else None

    def sell_one() -> bool:
        if lock is None:
            return stock.sell(None)
        with lock as hold:
            return stock.sell(hold.token)

    def work() -> None:
        count = 0
        while sell_one():
            count += 1
        sold.put(count)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sale(url: str | None) -> int:
    """Hold a sale and give how many tickets were sold."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        Stock(folder).fill()
        sold = context.SimpleQueue()
        sellers = [
            context.Process(target=seller, args=(url, folder, sold)) for _ in range(PROCESSES)
        ]
        for process in sellers:
            process.start()
        for process in sellers:
            process.join()
            if process.exitcode != 0:
                message = f"a seller ended with status {process.exitcode}"
                raise RuntimeError(message)
        return sum(sold.get() for _ in range(PROCESSES * THREADS))


def main() -> None:
    """Hold the sale without a lock, then with one."""
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:{folder}/locks.db"
        print(f"{TICKETS} tickets, {PROCESSES} processes with {THREADS} threads each")
        print(f"without a lock: {sale(None)} sold")
        sold = sale(url)
        print(f"with Fencelock: {sold} sold")
        sys.exit(sold != TICKETS)


if __name__ == "__main__":
    main()
