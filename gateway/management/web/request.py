"""One HTTP request: its head, its body and the response."""

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Final, Protocol
from urllib.parse import parse_qsl

from gateway.access import Principal
from gateway.management.http.errors import HttpError

Headers = list[tuple[bytes, bytes]]

#: Maximum number of fields in a query.
_MAX_FIELDS: Final = 1000


class RequestConnection(Protocol):
    """The connection of a request."""

    def promote(self) -> None:
        """Poll the connection at normal priority: its client has logged in."""
        ...

    def read_body(self) -> None:
        """Start to receive the body."""
        ...

    def send_head(self, status: int, headers: Headers) -> None:
        """Send the head of the response."""
        ...

    def send(self, data: bytes) -> None:
        """Send a piece of the response's body."""
        ...

    def end(self) -> None:
        """End the response."""
        ...

    def abort(self) -> None:
        """Abort the connection in the middle of a response."""
        ...


class Flow(Protocol):
    """A source of response pieces, under flow control."""

    def pause(self) -> None:
        """Pause: the client does not read fast enough."""
        ...

    def resume(self) -> None:
        """Resume: the client has read what was sent."""
        ...


class Request:
    """A request whose head was received. Its body is received only after ``take_body``.

    ``largest_body`` is the maximum size of the body. ``is_secure``: the client uses TLS, here or to a proxy.
    ``user`` is the one that the leader of another cell of the cluster has authenticated.
    """

    def __init__(
        self,
        connection: RequestConnection,
        method: str,
        target: str,
        headers: Iterable[tuple[bytes, bytes]],
        peer_host: str,
        *,
        is_local: bool,
        is_secure: bool = False,
        user: Principal | None = None,
    ) -> None:
        self.method = method
        self.user = user
        self.path, _, query = target.partition("?")
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode(errors="replace") for name, value in headers
        }
        self.peer_host = peer_host
        self.is_local = is_local
        self.is_secure = is_secure or self.headers.get("x-forwarded-proto") == "https"
        self.flow: Flow | None = None
        self.is_answered = False
        self.is_lost = False
        self.largest_body = 0
        self._query = query
        self._content = BytesIO()
        self._connection: RequestConnection | None = connection
        self._complete: Callable[[], None] = lambda: None
        self._lost: list[Callable[[], None]] = []

    @property
    def connection(self) -> RequestConnection | None:
        """The connection, until the response is complete."""
        return self._connection

    @property
    def target(self) -> str:
        """The path with the query."""
        return f"{self.path}?{self._query}" if self._query else self.path

    @property
    def query(self) -> dict[str, str]:
        """The query; the last value of a repeated field. :raises ValueError: if it has too many fields."""
        return dict(parse_qsl(self._query, keep_blank_values=True, max_num_fields=_MAX_FIELDS))

    def values(self, name: str) -> list[str]:
        """Return all values of a field of the query. :raises ValueError: if the query has too many fields."""
        fields = parse_qsl(self._query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        return [value for field, value in fields if field == name]

    @property
    def declared_size(self) -> int | None:
        """Size of the body in the head; ``None`` if it comes in chunks."""
        if "transfer-encoding" in self.headers:
            return None
        return int(self.headers.get("content-length", 0))

    @property
    def content(self) -> bytes:
        """The body."""
        return self._content.getvalue()

    def logged_in(self) -> None:
        """Poll the connection at normal priority, because its client has logged in."""
        if self._connection is not None:
            self._connection.promote()

    # The body

    def take_body(self, limit: int, complete: Callable[[], None]) -> None:
        """Receive a body of up to ``limit`` bytes, then call ``complete``.

        :raises HttpError: 413 if the declared size is larger. The connection refuses a larger body in chunks.
        """
        self._complete = complete
        self.largest_body = limit
        if (self.declared_size or 0) > limit:
            raise too_large(limit)
        if self.declared_size == 0:
            complete()
        elif self._connection is not None:
            self._connection.read_body()

    def receive_body(self, data: bytes | bytearray) -> int:
        """Add a piece to the body; return the size so far."""
        self._content.write(data)
        return self._content.tell()

    def end_body(self) -> None:
        """Handle the end of the body."""
        self._complete()

    # The response

    def answer(self, status: int, headers: Headers, content: bytes) -> None:
        """Send a complete response."""
        if status != 204:
            headers = [*headers, (b"Content-Length", b"%d" % len(content))]
        self.begin_answer(status, headers)
        self.write(content)
        self.end_answer()

    def begin_answer(self, status: int, headers: Headers) -> None:
        """Send the head of a response."""
        if self._connection is not None:
            self.is_answered = True
            self._connection.send_head(status, headers)

    def write(self, data: bytes) -> None:
        """Send a piece of the response's body, unless the method is HEAD."""
        if self._connection is not None and data and self.method != "HEAD":
            self._connection.send(data)

    def end_answer(self) -> None:
        """End the response."""
        connection, self._connection = self._connection, None
        self._forget()
        if connection is not None:
            connection.end()

    def abort(self) -> None:
        """Abort the connection, because the response cannot be completed."""
        if self._connection is not None:
            self._connection.abort()

    # The end of the connection

    def when_lost(self, call: Callable[[], None]) -> None:
        """Register a call for the loss of the connection before the response is complete."""
        self._lost.append(call)

    def connection_lost(self) -> None:
        """Handle the loss of the connection."""
        self._connection = None
        self.is_lost = True
        lost = self._lost
        self._forget()
        for call in lost:
            call()

    def _forget(self) -> None:
        """Release the body and all callbacks."""
        self._content = BytesIO()
        self._complete = lambda: None
        self._lost = []
        self.flow = None


def too_large(limit: int) -> HttpError:
    """Return the error for a body above the limit."""
    return HttpError(413, "bad_request", f"the body is larger than {limit} bytes")
