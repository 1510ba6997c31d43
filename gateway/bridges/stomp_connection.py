"""Connections to STOMP brokers as a client, with stomp.py in threads of its own."""

from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, Final

import stomp
from stomp.utils import Frame
from twisted.internet.defer import Deferred

from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.handshake import end_handshake
from gateway.bridges.link import Lost

_TIMEOUT_S: Final = 30
_HEARTBEAT_MS: Final = 10_000


class StompRefused(Exception):
    """The server refused a connection, or cannot be reached; the text is the reason."""


class StompConnection(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    """One connection. Calls come on the reactor's thread; a thread makes stomp.py's calls, which block, in their order.

    ``on_frame`` is called with each MESSAGE, of which ``prefetch`` may be unsettled: the thread that reads waits for
    ``settled`` then. ``on_answer`` is called with the number of a SEND that the server has received. ``lost`` is called
    with the reason when the connection ends.
    """

    def __init__(self, uri: BrokerUri, prefetch: int, reactor: Any, lost: Lost) -> None:
        self.on_frame: Callable[[Frame], None] = lambda frame: None
        self.on_answer: Callable[[int], None] = lambda number: None
        self._uri = uri
        self._reactor = reactor
        self._lost = lost
        self._prefetch = max(1, prefetch)
        self._room = Semaphore(self._prefetch)
        self._is_closed = False
        self._reason = ""
        self._opened: Deferred[None] = Deferred()
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._client = stomp.Connection12(
            [(uri.host, uri.port)],
            prefer_localhost=False,
            try_loopback_connect=False,
            reconnect_attempts_max=1,
            heartbeats=(_HEARTBEAT_MS, _HEARTBEAT_MS),
            vhost=uri.vhost or uri.host,
            auto_decode=False,
        )
        if uri.has_tls:
            self._client.set_ssl([(uri.host, uri.port)], **_tls_options(uri.options))
        self._client.set_listener("bridge", self)

    async def connect(self) -> None:
        """Connect. :raises StompRefused: when the server refuses, or cannot be reached."""
        self._calls.put(self._connect)
        Thread(target=self._work, name=f"stomp {self._uri.host}", daemon=True).start()
        self._opened.addTimeout(_TIMEOUT_S, self._reactor)
        try:
            await self._opened
        except BaseException:
            self.close()
            raise

    def subscribe(self, destination: str) -> None:
        """Subscribe to a destination; an ERROR ends the connection."""
        headers = {"prefetch-count": str(self._prefetch), "activemq.prefetchSize": str(self._prefetch)}
        self._calls.put(lambda: self._client.subscribe(destination, "bridge", "client-individual", headers))

    def send(self, destination: str, body: bytes, headers: Mapping[str, str], number: int) -> None:
        """Send a message; ``on_answer`` is called with its number."""
        sent = {**headers, "receipt": str(number)}
        self._calls.put(lambda: self._client.send(destination, body, headers=sent))

    def acknowledge(self, id: str) -> None:
        """Acknowledge a message by the header ``ack`` of its frame."""
        self._calls.put(lambda: self._client.ack(id))

    def settled(self) -> None:
        """Make room for one more message."""
        self._room.release()

    def close(self) -> None:
        """Send what waits and disconnect; safe to call twice."""
        if not self._is_closed:
            self._is_closed = True
            self._room.release(self._prefetch + 1)  # the thread that reads may wait for room
            self._calls.put(self._client.disconnect)
            self._calls.put(None)

    # In threads

    def _work(self) -> None:
        """Make the calls in their order."""
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception as error:  # stomp.py raises its own errors and those of sockets and TLS
                self._call(self._ended, str(error) or type(error).__name__)

    def _connect(self) -> None:
        # without a user, the server decides
        self._client.connect(self._uri.username or None, self._uri.password or None, wait=True)
        self._call(self._open_ended, "")

    def on_message(self, frame: Frame) -> None:
        """Pass a MESSAGE on."""
        self._room.acquire()
        if not self._is_closed:
            self._call(self._deliver, frame)

    def on_receipt(self, frame: Frame) -> None:
        """Pass the answer to a SEND on."""
        number = str(frame.headers.get("receipt-id", ""))
        if number.isdigit():
            self._call(self._answered, int(number))

    def on_error(self, frame: Frame) -> None:
        """Remember the reason of the end of the connection, which follows."""
        body = frame.body or b""
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
        self._call(self._ended, f"{frame.headers.get('message', 'ERROR')}: {text.strip()}"[:500])

    def on_disconnected(self) -> None:
        """Report the end of the connection."""
        self._call(self._ended, "disconnected")

    def _call(self, call: Callable[..., None], *arguments: object) -> None:
        self._reactor.callFromThread(call, *arguments)

    # On the reactor's thread again

    def _deliver(self, frame: Frame) -> None:
        if not self._is_closed:
            self.on_frame(frame)

    def _answered(self, number: int) -> None:
        self.on_answer(number)

    def _open_ended(self, fault: str) -> None:
        end_handshake(self._opened, StompRefused(fault) if fault else None)

    def _ended(self, reason: str) -> None:
        self._open_ended(reason)
        if not self._is_closed:
            self.close()
            self._lost(reason)


def _tls_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the TLS options of stomp.py for those of a URI."""
    return {
        "key_file": options.get("keyfile"),
        "cert_file": options.get("certfile"),
        "ca_certs": options.get("cacertfile"),
        "verify": options.get("verify") != "verify_none",
    }
