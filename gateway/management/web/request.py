"""One HTTP request: what its head says, the body once somebody asks for it, and the answer."""

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Final, Protocol
from urllib.parse import parse_qsl

from gateway.management.http.errors import HttpError

Headers = list[tuple[bytes, bytes]]

#: Fields of a query that are read.
_MAX_FIELDS: Final = 1000


class RequestConnection(Protocol):
    """The connection that a request came on."""

    def promote(self) -> None:
        """Poll the connection at normal priority: its client has logged in."""
        ...

    def read_body(self) -> None:
        """Receive the body, which waits until now."""
        ...

    def send_head(self, status: int, headers: Headers) -> None:
        """Begin the answer."""
        ...

    def send(self, data: bytes) -> None:
        """Send a piece of the answer's body."""
        ...

    def end(self) -> None:
        """End the answer."""
        ...

    def abort(self) -> None:
        """End the connection at once, in the middle of an answer that cannot be completed."""
        ...


class Flow(Protocol):
    """What makes an answer piece by piece, and is told whether the client takes it."""

    def pause(self) -> None:
        """Make no more: the client does not keep up."""
        ...

    def resume(self) -> None:
        """Make more: the client took what there was."""
        ...


class Request:
    """A request whose head has come. Its body is received once ``take_body`` was called, and never before.

    ``largest_body`` is how much of it is taken.
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
    ) -> None:
        self.method = method
        self.path, _, query = target.partition("?")
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode(errors="replace") for name, value in headers
        }
        self.peer_host = peer_host
        self.is_local = is_local
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
    def query(self) -> dict[str, str]:
        """What stands behind the question mark; of what is said twice, the last. :raises ValueError: if it is much."""
        return dict(parse_qsl(self._query, keep_blank_values=True, max_num_fields=_MAX_FIELDS))

    @property
    def declared_size(self) -> int | None:
        """How large the body is said to be; ``None`` when it comes in chunks."""
        if "transfer-encoding" in self.headers:
            return None
        return int(self.headers.get("content-length", 0))

    @property
    def content(self) -> bytes:
        """The body."""
        return self._content.getvalue()

    def logged_in(self) -> None:
        """Serve its connection like those of other protocols, no longer like one that has not logged in."""
        if self._connection is not None:
            self._connection.promote()

    # The body

    def take_body(self, limit: int, complete: Callable[[], None]) -> None:
        """Receive a body of up to ``limit`` bytes, then call ``complete``.

        :raises HttpError: 413 when it is said to be larger. What turns out so later is refused by the connection.
        """
        self._complete = complete
        self.largest_body = limit
        if (self.declared_size or 0) > limit:
            raise too_large(limit)
        if self.declared_size == 0:
            complete()
        elif self._connection is not None:
            self._connection.read_body()

    def receive_body(self, data: bytes) -> int:
        """Take a piece of the body in; return how much of it there is."""
        self._content.write(data)
        return self._content.tell()

    def end_body(self) -> None:
        """All of the body is there."""
        self._complete()

    # The answer

    def answer(self, status: int, headers: Headers, content: bytes) -> None:
        """Send a whole answer."""
        if status != 204:
            headers = [*headers, (b"Content-Length", b"%d" % len(content))]
        self.begin_answer(status, headers)
        self.write(content)
        self.end_answer()

    def begin_answer(self, status: int, headers: Headers) -> None:
        """Send the head of an answer."""
        if self._connection is not None:
            self.is_answered = True
            self._connection.send_head(status, headers)

    def write(self, data: bytes) -> None:
        """Send a piece of the answer's body; nothing where there is none to send."""
        if self._connection is not None and data and self.method != "HEAD":
            self._connection.send(data)

    def end_answer(self) -> None:
        """The answer is complete."""
        connection, self._connection = self._connection, None
        self._forget()
        if connection is not None:
            connection.end()

    def abort(self) -> None:
        """End the connection: what was begun cannot be completed."""
        if self._connection is not None:
            self._connection.abort()

    # The end of the connection

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call this if the client goes before its answer is complete."""
        self._lost.append(call)

    def connection_lost(self) -> None:
        """The client is gone."""
        self._connection = None
        self.is_lost = True
        lost = self._lost
        self._forget()
        for call in lost:
            call()

    def _forget(self) -> None:
        """Let go of the body and of everybody who is to be called."""
        self._content = BytesIO()
        self._complete = lambda: None
        self._lost = []
        self.flow = None


def too_large(limit: int) -> HttpError:
    """Say that a body is larger than what is taken."""
    return HttpError(413, "bad_request", f"the body is larger than {limit} bytes")
