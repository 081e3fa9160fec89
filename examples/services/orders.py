"""The first service: takes the lock in the request's name, and passes its ticket on.

`python orders.py STORE URL-OF-PAYMENTS` says on which address it listens.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fencelock


class Orders(BaseHTTPRequestHandler):
    """POST /order/N."""

    locks: fencelock.Client
    payments: str

    def do_POST(self) -> None:
        """Change one order; 409 while another request does."""
        name = self.path.strip("/")
        try:
            lock = self.locks.lock(name, owner=self.headers["X-Request-Id"])
            with lock.hold(blocking=False) as hold:
                request = urllib.request.Request(
                    f"{self.payments}/{name}",
                    method="POST",
                    headers={"X-Lock-Ticket": hold.ticket()},
                )
                with urllib.request.urlopen(request) as answer:
                    text = f"orders {hold.token}\n{answer.read().decode()}"
            self.answer(200, text)
        except fencelock.ContendedError:
            self.answer(409, "another request has this order\n")
        except fencelock.FencelockError as error:
            self.answer(503 if error.retryable else 500, f"{error}\n")
        except urllib.error.URLError as error:
            self.answer(502, f"payments: {error}\n")

    def answer(self, status: int, text: str) -> None:
        """Answer with plain text."""
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    store, Orders.payments = sys.argv[1:]
    Orders.locks = fencelock.connect(store, label="orders")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Orders)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
