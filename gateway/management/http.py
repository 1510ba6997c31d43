"""One HTTP request: how much of it is taken, and what it says."""

from base64 import b64decode
from binascii import Error as NotBase64
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from twisted.web.server import Request

from gateway.access import Credentials
from gateway.management.errors import HttpError, anonymous, bad_request, login_failed
from gateway.management.views.json import encode
from gateway.net.listeners import plain_host


class LimitedRequest(Request):
    """A request whose body is kept in memory, and only so much of it."""

    max_body_size = 0
    is_too_large = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """The size of the body is known, or that it comes in chunks."""
        self.content = BytesIO()
        if length is not None and length > self.max_body_size:
            self._refuse_size()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """A part of the body came."""
        if self.is_too_large:
            return
        assert self.content is not None
        if self.content.tell() + len(data) > self.max_body_size:
            self._refuse_size()
        else:
            super().handleContentChunk(data)  # type: ignore[no-untyped-call]  # Twisted's

    def _refuse_size(self) -> None:
        """Say so before the rest has come, and hang up."""
        self.is_too_large = True
        body = encode(HttpError(413, "bad_request", f"the body is larger than {self.max_body_size} bytes").fields)
        head = b"HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nConnection: close\r\n"
        channel: Any = self.channel  # Twisted's interfaces are not types
        channel.transport.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        channel.loseConnection()

    def process(self) -> None:
        """Answer, unless that was done."""
        if not self.is_too_large:
            super().process()  # type: ignore[no-untyped-call]  # Twisted's


def credentials_of(request: Any) -> Credentials:
    """Return who somebody claims to be. :raises HttpError: when they do not say, or not in words we know."""
    header = request.getHeader(b"authorization")
    if header is None:
        raise anonymous()
    scheme, _, encoded = header.partition(b" ")
    if scheme.lower() != b"basic":
        raise login_failed()
    try:
        user, _, password = b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (NotBase64, ValueError):
        raise bad_request("the Authorization header cannot be decoded") from None
    return Credentials("PLAIN", user, password, peer_host=peer_host_of(request))


def peer_host_of(request: Any) -> str:
    """Return where a request came from."""
    return plain_host(getattr(request.getClientAddress(), "host", ""))


def query_of(request: Any) -> dict[str, str]:
    """Return what stands behind the question mark; of what is said twice, the last."""
    return {name.decode(errors="replace"): values[-1].decode(errors="replace") for name, values in request.args.items()}


def headers_of(request: Any) -> dict[str, str]:
    """Return the headers, by name in lower case."""
    headers = request.requestHeaders.getAllRawHeaders()
    return {name.decode("latin-1").lower(): values[-1].decode(errors="replace") for name, values in headers}


def decoded(segment: str) -> str:
    """Return the name that a segment of the path stands for. :raises HttpError: when it is not UTF-8."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise bad_request("the path is not UTF-8") from None
