"""Decides how the tests run an assessor's endpoint: a real HTTP server on loopback that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Status, headers and body of an answer to these fields.
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    """What came in, and what is answered. `held` lets answers go when it is set."""

    url: str
    answer: Callable[[dict[str, object]], Answer]
    came: list[dict[str, object]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    held: threading.Event | None = None


def labelled(label: object, **more: object) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps({"label": label, **more}).encode()


@contextmanager
def serving(answer: Callable[[dict[str, object]], Answer]) -> Iterator[Server]:
    """A server on a free port of its own, until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.came.append(fields)
            server.headers.append(dict(self.headers.items()))
            if server.held is not None:
                server.held.wait(30)
            status, headers, body = server.answer(fields)
            try:
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # whoever asked did not wait
                return

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{http.server_address[1]}/assess", answer)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        if server.held is not None:
            server.held.set()
        http.shutdown()
        thread.join()
        http.server_close()
