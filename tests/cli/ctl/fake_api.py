"""A management API with canned answers that records its requests."""

import json
import ssl
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}


@dataclass(frozen=True)
class ReceivedRequest:
    """One request: the target as sent, the body decoded."""

    method: str
    target: str
    body: object = None
    credentials: str = "guest:guest"
    reason: str | None = None


@dataclass
class FakeApi:
    """Canned answers by method and path below ``/api/``; other requests get 404."""

    port: int
    scheme: str = "http"
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    received: list[ReceivedRequest] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def answer(self, request: str, body: object = None, status: int = 200) -> None:
        """Set the answer for ``GET queues/%2F``; the query of a request is ignored."""
        self.answers[request] = (status, b"" if body is None else json.dumps(body).encode())

    def changes(self) -> list[tuple[str, object]]:
        """Return the requests other than GET: ``PUT users/bob`` and the body."""
        return [
            (f"{received.method} {received.target.removeprefix('/api/')}", received.body)
            for received in self.received
            if received.method != "GET"
        ]


@contextmanager
def fake_api(tls: ssl.SSLContext | None = None) -> Iterator[FakeApi]:
    """Run a fake API on a free port of 127.0.0.1."""

    class Requests(BaseHTTPRequestHandler):
        def answer(self) -> None:
            received = self._received()
            api.received.append(received)
            path = received.target.partition("?")[0].removeprefix("/api/")
            status, body = api.answers.get(f"{received.method} {path}", (404, json.dumps(NOT_FOUND).encode()))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Do not log."""

        def _received(self) -> ReceivedRequest:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return ReceivedRequest(
                method=self.command,
                target=self.path,
                body=json.loads(sent) if sent else None,
                credentials=b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode(),
                reason=self.headers.get("X-Reason"),
            )

    with HTTPServer(("127.0.0.1", 0), Requests) as server:
        api = FakeApi(server.server_address[1], "http" if tls is None else "https")
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
