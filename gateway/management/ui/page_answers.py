"""Answers to the requests of browsers for the files of the web UI.

The policy for content permits only files, requests and WebSockets of this host: no inline script, no style attribute
and no form that is sent elsewhere.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from gateway.management.http.errors import HttpError
from gateway.management.ui.static_files import StaticFile, StaticFiles
from gateway.management.web.request import Headers, Request

_METHODS: Final = ("GET", "HEAD")

#: Listeners whose WebSockets the page may open, on any port.
_WEBSOCKET_LISTENERS: Final = ("web_mqtt", "web_mqtts", "web_stomp", "web_stomps")

#: A host of a request that can be part of a header: a name or an address, without its port.
_HOST: Final = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?")


class PageAnswers:
    """Sends the files of the web UI. ``addresses`` returns the listeners by name."""

    def __init__(self, addresses: Callable[[], Mapping[str, tuple[str, int]]]) -> None:
        self._files = StaticFiles()
        self._addresses = addresses

    def answer(self, request: Request) -> None:
        """Send a file. :raises HttpError: 404 if there is none at the path, 405 for a method other than GET."""
        file = self._files.file(request.path)
        if file is None:
            raise HttpError(404, "Object Not Found", "Not Found")
        if request.method not in _METHODS:
            raise HttpError(405, headers={"Allow": ", ".join(_METHODS)})
        headers = self._headers(request, file)
        if file.etag in request.headers.get("if-none-match", ""):
            request.begin_answer(304, headers)
            request.end_answer()
            return
        content, encoding = file.content, []
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, encoding = file.compressed, [(b"Content-Encoding", b"gzip")]
        request.answer(200, [*headers, *encoding, (b"Content-Type", file.content_type.encode())], content)

    def _headers(self, request: Request, file: StaticFile) -> Headers:
        return [
            (b"Cache-Control", b"no-cache"),
            (b"ETag", file.etag.encode()),
            (b"Vary", b"Accept-Encoding"),
            (b"Content-Security-Policy", content_policy(request.headers.get("host", ""), self._addresses()).encode()),
            (b"X-Content-Type-Options", b"nosniff"),
            (b"X-Frame-Options", b"DENY"),
            (b"Referrer-Policy", b"no-referrer"),
            (b"Cross-Origin-Opener-Policy", b"same-origin"),
            (b"Cross-Origin-Resource-Policy", b"same-origin"),
            (b"Permissions-Policy", b"camera=(), geolocation=(), microphone=()"),
        ]


def content_policy(host: str, addresses: Mapping[str, tuple[str, int]]) -> str:
    """Return the policy for content. It permits the WebSockets of the host to which a browser sent its request."""
    named = _HOST.fullmatch(host)
    ports = [addresses[name][1] for name in _WEBSOCKET_LISTENERS if name in addresses]
    sockets = [f"{scheme}://{named[1]}:{port}" for port in ports for scheme in ("ws", "wss")] if named else []
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            " ".join(["connect-src 'self'", *sockets]),
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
