"""A server on this machine that answers as a test says, and keeps what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest

KEY = "sk-s3cr3t-0815-key"


class Answer(NamedTuple):
    """One answer: `hold` is waited for before it begins, `cut` ends the connection after half of it."""

    body: bytes
    status: int = 200
    headers: dict = {}  # noqa: RUF012  (none is written to)
    kind: str = "application/json"
    hold: threading.Event | None = None
    cut: bool = False


class Asked(NamedTuple):
    path: str
    headers: dict
    body: dict


def of_json(value, **rest):
    return Answer(json.dumps(value).encode(), **rest)


def of_events(*events, cut=False, end=""):
    """Answer with server-sent events; each is a value, or a pair of the event's name and its value."""
    text = ""
    for event in events:
        name, value = event if isinstance(event, tuple) else ("", event)
        text += (f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n"
    return Answer((text + end).encode(), kind="text/event-stream", cut=cut)


class Server:
    """Gives its answers one by one, and the last one again and again."""

    def __init__(self, *answers):
        self.answers, self.asked, self.lets_go = list(answers), [], threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def _handler(server):  # noqa: N805  (`self` is the handler's)
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                size = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(size) or b"{}")
                server.asked.append(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                answer = server.choose_answer(body)
                if answer.hold is not None:
                    answer.hold.wait(10)
                self.send_response(answer.status)
                self.send_header("content-type", answer.kind)
                self.send_header("content-length", str(len(answer.body)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body[: len(answer.body) // 2] if answer.cut else answer.body)
                self.close_connection = self.close_connection or answer.cut

            def log_message(self, *words):
                pass

            def handle(self):
                with contextlib.suppress(ConnectionError):  # who asked has hung up
                    super().handle()

        return Handler

    def choose_answer(self, body):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def close(self):
        for answer in self.answers:
            if answer.hold is not None:
                answer.hold.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def serve():
    """Return a function that starts a server with these answers; it ends with the test."""
    results = []

    def start(*answers):
        results.append(Server(*answers))
        return results[-1]

    yield start
    for server in results:
        server.close()
