"""One of several sellers, which may be written in any language: sells until nothing is left.

`python seller.py URL LOCK FOLDER NAME`, with the stock of flash_sale.py in FOLDER. `make demo
WITH=python` lets it sell beside others.
"""

from __future__ import annotations

import sys

from flash_sale import Stock

import fencelock


def main(url: str, name: str, folder: str, seller: str) -> None:
    """Sell one after the other, each under the lock."""
    stock = Stock(folder, seller)
    with fencelock.connect(url, label=seller) as client:
        lock = client.lock(name)
        more = True
        while more:
            with lock as hold:
                more = stock.sell(hold.token)


if __name__ == "__main__":
    main(*sys.argv[1:])
