"""A real HTTP server on a free port of this machine, whose answers a test sets."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Form = dict[str, str]
Respond = Callable[[str, Form], tuple[int, bytes]]


class AccessServer:
    """Answers each request by ``respond``, which gets the path and the form; ``requests`` are those received."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.requests: list[tuple[str, str, Form]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def asked(self, path: str) -> list[Form]:
        """Return the forms of the requests for a path."""
        return [form for _, requested, form in self.requests if requested == path]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                self._answer(parts.path, parts.query)

            def do_POST(self) -> None:
                self._answer(self.path, self.rfile.read(int(self.headers["Content-Length"])).decode())

            def _answer(self, path: str, encoded: str) -> None:
                form = dict(parse_qsl(encoded, keep_blank_values=True))
                server.requests.append((self.command, path, form))
                status, body = server.respond(path, form)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    @contextmanager
    def running(self) -> Iterator["AccessServer"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
