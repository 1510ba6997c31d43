"""A management API that answers what it is told to, and remembers what it was asked."""

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
class Asked:
    """One request: the target as it was on the wire, the body decoded."""

    method: str
    target: str
    body: object = None
    credentials: str = "guest:guest"
    reason: str | None = None


@dataclass
class FakeApi:
    """Canned answers by method and path below ``/api/``. What has none is not found."""

    port: int
    scheme: str = "http"
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def answer(self, request: str, body: object = None, status: int = 200) -> None:
        """Answer ``GET queues/%2F`` with this JSON; a query in the request itself does not count."""
        self.answers[request] = (status, b"" if body is None else json.dumps(body).encode())

    def changes(self) -> list[tuple[str, object]]:
        """What was asked for beside reading: ``PUT users/bob`` and the body."""
        return [
            (f"{asked.method} {asked.target.removeprefix('/api/')}", asked.body)
            for asked in self.asked
            if asked.method != "GET"
        ]


@contextmanager
def fake_api(tls: ssl.SSLContext | None = None) -> Iterator[FakeApi]:
    """Run one on a free port of 127.0.0.1."""

    class Requests(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked = self._asked()
            api.asked.append(asked)
            path = asked.target.partition("?")[0].removeprefix("/api/")
            status, body = api.answers.get(f"{asked.method} {path}", (404, json.dumps(NOT_FOUND).encode()))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

        def _asked(self) -> Asked:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return Asked(
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
