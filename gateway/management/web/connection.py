"""One connection to the HTTP listener: h11 parses and formats HTTP/1.1, this module does the I/O and the timeouts.

The body of a request is received only after ``Request.take_body``, once the request is authorised. Each wait has a
timeout: for a head, for a slow body, for a client that does not read.
"""

from collections.abc import Callable
from email.utils import formatdate
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final

import h11
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer  # type: ignore[import-untyped]

from gateway.access import Principal
from gateway.access.principals import is_loopback
from gateway.management.http.errors import HttpError
from gateway.management.views.json import encode
from gateway.management.web.connections import HttpConnections
from gateway.management.web.request import Headers, Request, too_large
from gateway.net.connection_io import LARGEST_READ
from gateway.net.introduced import introduced_of
from gateway.net.listeners import plain_host
from gateway.net.login_poller import promote
from gateway.net.tls_info import is_tls

#: Maximum number of headers in a request.
MAX_HEADERS: Final = 100

#: Time a refused client may go on sending before its connection is aborted, in seconds. An immediate abort could reset
#: the connection before the client reads the response.
_LINGER_S: Final = 2.0

#: Interval at which the transfer rate of a body is checked, in seconds.
_RATE_INTERVAL_S: Final = 5.0

#: Maximum number of h11 events handled in one turn: chunks may be as small as a byte.
_MAX_EVENTS: Final = 200

#: Bytes received during a response at which reading pauses.
_MAX_EARLY_BYTES: Final = 16 * 2**10

_REASONS: Final = {408: "the request was sent too slowly", 431: "the head of the request is too large"}


class Stage(Enum):
    """The state of a connection."""

    HEAD = auto()
    AUTHORIZATION = auto()  # the body is not received yet
    BODY = auto()
    ANSWER = auto()
    END = auto()


@implementer(IPushProducer)
class HttpProtocol(Protocol):
    """Owns the connection's state and timers; ``connections`` owns the state that connections share."""

    def __init__(self, connections: HttpConnections) -> None:
        self._connections = connections
        self._limits = connections.limits
        self._http = h11.Connection(h11.SERVER, connections.limits.max_header_size)
        self._stage = Stage.HEAD
        self._request: Request | None = None
        self._timer: Any = None
        self._stall_timer: Any = None
        self._is_write_blocked = False
        self._is_reading = True
        self._is_scheduled = False
        self._is_advancing = False
        self._has_partial_head = False  # part of a head was received
        self._early_bytes = 0  # bytes received during a response
        self._reserved_bytes = 0
        self._rate_bytes = 0  # bytes of the body since the last check of its rate

    # Callbacks of Twisted

    def connectionMade(self) -> None:
        """Admit the connection, or refuse it with 503."""
        transport: Any = self.transport
        transport.registerProducer(self, True)
        if hasattr(transport, "setTcpNoDelay"):
            transport.setTcpNoDelay(True)
        if self._connections.admit(self):
            self._start_timer(self._limits.header_timeout_s, self.evict)
        else:
            self._refuse(
                HttpError(
                    503, "too_many_connections", "'management.max_connections' is reached and no connection is idle"
                )
            )

    def dataReceived(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._stage is Stage.END or not data:  # to h11, no bytes are the end of the connection
            return
        self._http.receive_data(data)
        if self._stage is Stage.HEAD:
            if not self._has_partial_head:
                self._has_partial_head = True
                self._start_timer(self._limits.header_timeout_s, self.evict)
            self._advance()
        elif self._stage is Stage.BODY:
            self._advance()
        else:
            self._early_bytes += len(data)
            if self._early_bytes > _MAX_EARLY_BYTES:
                self._read(False)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Clean up after the connection."""
        self._stage = Stage.END
        self._cancel_timer()
        self._cancel_stall_timer()
        self._connections.forget(self)
        self._drop_request()

    def pauseProducing(self) -> None:
        """Pause the response: the client does not read fast enough."""
        self._is_write_blocked = True
        if self._stall_timer is None and self._stage is not Stage.END:
            self._stall_timer = self._connections.call_later(self._limits.stall_timeout_s, self.abort)
        if self._request is not None and self._request.flow is not None:
            self._request.flow.pause()

    def resumeProducing(self) -> None:
        """Resume the response: the client has read what was sent."""
        self._is_write_blocked = False
        self._cancel_stall_timer()
        if self._request is not None:
            if self._request.flow is not None:
                self._request.flow.resume()
        elif self._stage is Stage.HEAD:
            self._advance_soon()

    def stopProducing(self) -> None:
        """Do nothing: ``connectionLost`` follows."""

    # Requests

    def _advance(self) -> None:
        """Process received events, up to a limit for one turn."""
        self._is_scheduled = False
        self._is_advancing = True
        try:
            self._process_events()
        finally:
            self._is_advancing = False

    def _process_events(self) -> None:
        if self._is_write_blocked and self._stage is Stage.HEAD:
            self._read(False)
            return
        for _ in range(_MAX_EVENTS):
            if self._stage not in (Stage.HEAD, Stage.BODY):
                return
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse_malformed(error)
                return
            if event is h11.NEED_DATA:
                self._read(True)
                return
            if event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                return
            self._handle_event(event)
            if self._stage is Stage.HEAD:
                return  # at most one request in a turn
        self._read(False)
        self._advance_soon()

    def _advance_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._connections.call_later(0, self._advance)

    def _handle_event(self, event: object) -> None:
        if isinstance(event, h11.Request):
            self._receive_head(event)
        elif isinstance(event, h11.Data):
            self._receive_body(event.data)
        elif isinstance(event, h11.EndOfMessage) and self._request is not None:
            self._cancel_timer()
            self._stage = Stage.ANSWER
            self._request.end_body()

    def _receive_head(self, head: h11.Request) -> None:
        transport: Any = self.transport
        self._cancel_timer()
        self._has_partial_head = False
        self._connections.occupied(self)
        headers = list(head.headers)
        if len(headers) > MAX_HEADERS:
            self._refuse(HttpError(431, "bad_request", f"the request has more than {MAX_HEADERS} headers"))
            return
        size = len(head.target) + sum(len(name) + len(value) for name, value in headers)
        if size > self._limits.max_header_size:  # h11 limits only incomplete heads
            self._refuse_large_head(len(head.target))
            return
        self._stage = Stage.AUTHORIZATION
        peer_host = plain_host(getattr(transport.getPeer(), "host", ""))
        is_local = is_loopback(plain_host(getattr(transport.getHost(), "host", "")))
        method, target = head.method.decode("latin-1"), head.target.decode("latin-1")
        is_secure = is_tls(transport)
        user = _user_of(transport)
        request = Request(self, method, target, headers, peer_host, is_local=is_local, is_secure=is_secure, user=user)
        self._request = request
        if request.declared_size == 0:
            self._http.next_event()  # consume the end of the message
            self._stage = Stage.ANSWER
        self._connections.application.begin(request)

    def _receive_body(self, data: bytes | bytearray) -> None:
        assert self._request is not None
        self._rate_bytes += len(data)
        if self._request.declared_size is None and not self._reserve(len(data)):
            return
        if self._request.receive_body(data) > self._request.largest_body:
            self._refuse(too_large(self._request.largest_body))

    def _refuse_large_head(self, target_size: int) -> None:
        """Refuse a head that is too large: with 400 if the path and the query alone are."""
        if target_size > self._limits.max_header_size:
            self._refuse(HttpError(400, "bad_request", "the path and the query are too long"))
        else:
            self._refuse(HttpError(431, "bad_request", _REASONS[431]))

    def _refuse_malformed(self, error: h11.RemoteProtocolError) -> None:
        status = error.error_status_hint
        if status == 431 and self._stage is Stage.HEAD:  # an incomplete head; its first line may be whole
            self._refuse_large_head(len(self._http.trailing_data[0].partition(b"\r\n")[0]))
            return
        fault = str(error).partition(":")[0]  # the rest quotes the client's bytes, which may contain a password
        self._refuse(HttpError(status, "bad_request", _REASONS.get(status, fault)))

    # Methods for the request

    def promote(self) -> None:
        """Poll the connection at normal priority from now on: its client has logged in."""
        promote(self.transport)

    def read_body(self) -> None:
        """Start to receive the body of the request."""
        assert self._request is not None
        if not self._reserve(self._request.declared_size or 0):
            return
        if self._http.they_are_waiting_for_100_continue:
            self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")))
        self._stage = Stage.BODY
        if (self._request.declared_size or 0) >= LARGEST_READ:
            transport: Any = self.transport
            transport.bufferSize = LARGEST_READ  # for later requests too: who sends one large body sends more
        self._start_timer(_RATE_INTERVAL_S, self._check_body_rate)
        if not self._is_advancing:  # else the loop continues with the body
            self._advance_soon()

    def send_head(self, status: int, headers: Headers) -> None:
        """Send the head of the response."""
        headers = [(b"Server", b"gateway"), (b"Date", formatdate(usegmt=True).encode()), *headers]
        if self._http.their_state is not h11.DONE:
            headers.append((b"Connection", b"close"))
        self._stage = Stage.ANSWER
        self._cancel_timer()
        self._write(self._http.send(h11.Response(status_code=status, headers=headers, reason=_phrase(status))))

    def send(self, data: bytes) -> None:
        """Send a piece of the response's body."""
        self._write(self._http.send(h11.Data(data=data)))

    def end(self) -> None:
        """End the response; wait for the next request, or close the connection."""
        self._write(self._http.send(h11.EndOfMessage()))
        self._request = None
        self._release()
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._close()
            return
        self._http.start_next_cycle()
        self._stage = Stage.HEAD
        self._connections.idle(self)
        self._early_bytes = 0
        self._has_partial_head = bool(self._http.trailing_data[0])
        self._start_timer(
            self._limits.header_timeout_s if self._has_partial_head else self._limits.idle_timeout_s, self.evict
        )
        if self._has_partial_head:
            self._advance_soon()
        else:
            self._read(True)

    def abort(self) -> None:
        """Abort the connection."""
        transport: Any = self.transport
        self._stage = Stage.END
        self._drop_request()
        transport.abortConnection()

    # Closing

    def end_when_idle(self) -> None:
        """Close the connection, unless a request is in progress."""
        if self._stage is Stage.HEAD:
            self.evict()

    def evict(self) -> None:
        """Close a connection without a request in progress."""
        if self._has_partial_head:
            self._refuse_slow()
        else:
            self._close()

    def _refuse_slow(self) -> None:
        self._refuse(HttpError(408, "bad_request", _REASONS[408]))

    def _check_body_rate(self) -> None:
        """Refuse the request if its body is too slow."""
        self._timer = None
        if self._rate_bytes < self._limits.min_body_rate * _RATE_INTERVAL_S:
            self._refuse_slow()
            return
        self._rate_bytes = 0
        self._start_timer(_RATE_INTERVAL_S, self._check_body_rate)

    def _refuse(self, error: HttpError) -> None:
        """Send an error response and close the connection."""
        transport: Any = self.transport
        self._drop_request()
        self._connections.refused(getattr(transport.getPeer(), "host", ""), error)
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = encode(error.fields)
            headers = [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(content))]
            headers.append((b"Connection", b"close"))
            if error.status == 503:
                headers.append((b"Retry-After", b"1"))
            head = h11.Response(status_code=error.status, headers=headers, reason=_phrase(error.status))
            answer = [head, h11.Data(data=content)]
            for event in (*answer, h11.EndOfMessage()):
                self._write(self._http.send(event))
        self._close()

    def _close(self) -> None:
        """Close the connection once everything is sent; read remaining input, or a reset could lose the response."""
        transport: Any = self.transport
        is_sending = self._http.their_state not in (h11.DONE, h11.IDLE, h11.MUST_CLOSE)
        self._stage = Stage.END
        self._release()
        self._connections.forget(self)
        transport.unregisterProducer()
        self._cancel_stall_timer()
        self._start_timer(_LINGER_S if is_sending else self._limits.stall_timeout_s, transport.abortConnection)
        has_tls = hasattr(transport, "getPeerCertificate")  # it would pass the call on, past what it still has to send
        if is_sending and hasattr(transport, "loseWriteConnection") and not has_tls:
            self._read(True)
            transport.loseWriteConnection()
        else:
            transport.loseConnection()

    # Helpers

    def _reserve(self, size: int) -> bool:
        """Reserve memory for a body; refuse the request if none is left."""
        if self._connections.bodies.take(size):
            self._reserved_bytes += size
            return True
        self._refuse(HttpError(503, "too_many_bodies", "'management.max_bodies_size' is used up by other requests"))
        return False

    def _drop_request(self) -> None:
        request, self._request = self._request, None
        self._release()
        if request is not None:
            request.connection_lost()

    def _release(self) -> None:
        self._connections.bodies.release(self._reserved_bytes)
        self._reserved_bytes = 0

    def _write(self, data: bytes | None) -> None:
        transport: Any = self.transport
        if data:
            transport.write(data)

    def _read(self, is_wanted: bool) -> None:
        transport: Any = self.transport
        if is_wanted is not self._is_reading:
            self._is_reading = is_wanted
            if is_wanted:
                transport.resumeProducing()
            else:
                transport.pauseProducing()

    def _start_timer(self, delay_s: float, call: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._connections.call_later(delay_s, self._timed(call))

    def _timed(self, call: Callable[[], None]) -> Callable[[], None]:
        def due() -> None:
            self._timer = None
            call()

        return due

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


def _phrase(status: int) -> bytes:
    """Return the reason phrase of a status, which some tools show."""
    return HTTPStatus(status).phrase.encode()


def _user_of(transport: Any) -> Principal | None:  # Any: Twisted's interfaces are not types
    """Return the user that the leader of another cell has authenticated; ``None`` for a client's own request."""
    introduced = introduced_of(transport)
    if introduced is None or introduced.user is None:
        return None
    user = introduced.user
    return Principal(user.name, frozenset(user.tags), accepted_by=user.accepted_by)
