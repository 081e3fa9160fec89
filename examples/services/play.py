"""Starts the three services, makes one request, and shows that they had one token.

`python play.py [STORE]`; the carrier, whom the last service calls while all three hold the lock, is
this program itself: in that moment a stranger asks for the same order. Without STORE it starts a
Redis server.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORDER = f"order/{os.getpid()}-{time.time_ns()}"
PATIENCE = 30


def post(url: str, **headers: str) -> tuple[int, str]:
    """Give status and text of the answer."""
    named = {f"X-{name.replace('_', '-')}": value for name, value in headers.items()}
    request = urllib.request.Request(url, method="POST", headers=named)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@contextlib.contextmanager
def program(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start a program, and end it."""
    with subprocess.Popen(list(command), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def service(*command: str | Path) -> Iterator[str]:
    """Start a service, and give the address that it says."""
    with program(*command) as process:
        address = process.stdout.readline().strip()
        if not address:
            sys.exit(f"{command[-3]} did not start")
        yield address


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """Start a Redis server, and give its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = os.environ.get("REDIS_SERVER", "redis-server")
    with program(command, "--port", f"{port}", "--bind", "127.0.0.1", "--save", "") as server:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                if server.poll() is not None or time.monotonic() > end:
                    sys.exit("redis-server did not start")
                time.sleep(0.05)
            else:
                break
        # What it says is not to fill the pipe.
        threading.Thread(target=server.stdout.read, daemon=True).start()
        yield f"redis://127.0.0.1:{port}"


class Carrier(BaseHTTPRequestHandler):
    """Called while all three services hold the lock."""

    orders = ""
    ticket = ""
    stranger = (0, "")

    def do_POST(self) -> None:
        """Let a stranger ask for the same order."""
        if not Carrier.ticket:
            Carrier.ticket = self.headers["X-Lock-Ticket"]
            Carrier.stranger = post(f"{Carrier.orders}/{ORDER}", Request_Id="stranger")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def tokens(text: str) -> dict[str, int]:
    """Give the token of each service."""
    return {name: int(token) for name, token in map(str.split, text.splitlines())}


def check(fits: bool, what: str) -> None:
    """Say what was seen, and end when it is wrong."""
    print(f"{'yes' if fits else 'NO'}: {what}")
    if not fits:
        sys.exit(1)


def play(store: str) -> None:
    """Start everything, and make the requests."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Carrier)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    carrier = f"http://127.0.0.1:{server.server_port}"
    java = ["java", "-cp", os.environ["CLASSPATH"], HERE / "Payments.java"]
    with (
        service("node", HERE / "shipping.js", store, carrier) as shipping,
        service(*java, store, shipping) as payments,
        service(sys.executable, HERE / "orders.py", store, payments) as orders,
    ):
        Carrier.orders = orders
        status, text = post(f"{orders}/{ORDER}", Request_Id="trace-8f3a")
        check(status == 200, f"the request went through ({status}): {text.split()}")
        had = tokens(text)
        check(
            list(had) == ["orders", "payments", "shipping"] and len(set(had.values())) == 1,
            f"the three services had one token: {had}",
        )
        status, said = Carrier.stranger
        check(status == 409, f"meanwhile a stranger was refused ({status}): {said.strip()}")
        for url in (payments, shipping):
            status, said = post(f"{url}/{ORDER}", Lock_Ticket=Carrier.ticket)
            check(status == 409, f"afterwards its ticket is refused ({status}): {said.strip()}")
        status, text = post(f"{orders}/{ORDER}", Request_Id="stranger")
        later = tokens(text) if status == 200 else {}
        check(
            set(later) == set(had) and min(later.values()) > max(had.values()),
            f"and the stranger has the order ({status}), under a later token: {later}",
        )


if __name__ == "__main__":
    with contextlib.ExitStack() as stack:
        play(sys.argv[1] if len(sys.argv) > 1 else stack.enter_context(redis()))
