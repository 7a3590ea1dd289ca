"""A small HTTP server that answers every request with what a function of the test makes of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

ANSWERS = [
    "Build a wall.",
    "Hold a door open.",
    "Sharpen a knife on it.",
    "Paint it as a gift.",
    "Warm the bed with it.",
    "Break a window in an emergency.",
]
Reply = tuple[int, Any] | tuple[int, Any, dict[str, str]]


class _Scripted(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({**request, "path": self.path, "key": self.headers["Authorization"]})
        status, content, *headers = self.server.script(request, len(self.server.requests))
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers[0] if headers else {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers[0] if headers else {}):
            self.send_header("Content-Length", str(len(body)))
        with suppress(ConnectionError):  # the client may have given up
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def scripted(script: Callable[[dict[str, Any], int], Reply]) -> Iterator[Any]:
    """A running server; `requests` has what it was sent, and `script` may be exchanged."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Scripted) as server:
        server.daemon_threads = True
        server.requests, server.script = [], script
        server.address = f"http://127.0.0.1:{server.server_port}/v1"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def chat(*texts: Any, usage: dict[str, int] | None = None) -> tuple[int, Any]:
    content: dict[str, Any] = {"choices": [{"message": {"content": text}} for text in texts]}
    return 200, content | ({"usage": usage} if usage else {})


def in_turn(request: dict[str, Any], number: int) -> Reply:
    """Another answer in every call, for 10 and 5 tokens."""
    return chat(ANSWERS[(number - 1) % len(ANSWERS)], usage={"prompt_tokens": 10, "completion_tokens": 5})
