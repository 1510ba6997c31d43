"""A stomp.py client with blocking calls: its callbacks become results, each with a time limit."""

import itertools
import socket
from contextlib import suppress
from queue import Empty, Queue
from typing import Any, Final

import stomp
from stomp.exception import ConnectFailedException, NotConnectedException
from stomp.utils import Frame

from tests.interop.stomp_clients.stomp_server import StompServer

CONNECTIONS: Final = {
    "1.0": stomp.StompConnection10,
    "1.1": stomp.StompConnection11,
    "1.2": stomp.StompConnection12,
}

#: The time limit of answers and expected messages.
ARRIVAL_TIMEOUT_S: Final = 15.0

#: The time limit of the close after DISCONNECT, which stomp.py does not report if the server closed first.
DISCONNECT_TIMEOUT_S: Final = 1.0


class Refused(Exception):
    """CONNECT was answered with this ERROR frame."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame.headers["message"])
        self.frame = frame


class Stomp(stomp.ConnectionListener):
    """One client of a version. Its receiver runs in stomp.py's thread while it is connected.

    ``tls`` are options of ``set_ssl``; with them it connects over TLS.
    """

    def __init__(
        self,
        server: StompServer,
        version: str = "1.2",
        *,
        vhost: str = "/",
        heartbeats: tuple[int, int] = (0, 0),
        tls: dict[str, str] | None = None,
    ) -> None:
        self._server = server
        self._version = version
        # stomp.py does not accept them for a version without heart-beats.
        options: dict[str, Any] = {} if version == "1.0" else {"heartbeats": heartbeats, "vhost": vhost}
        where = [(server.host, server.port if tls is None else server.ports["stomps"])]
        self.connection = CONNECTIONS[version](where, reconnect_attempts_max=1, auto_decode=False, **options)
        if tls is not None:
            self.connection.set_ssl(for_hosts=where, **tls)
        self.connection.set_listener("test", self)
        self.welcome: dict[str, str] = {}
        self.beats: Queue[None] = Queue()
        self._messages: Queue[Frame] = Queue()
        self._receipts: Queue[str] = Queue()
        self._errors: Queue[Frame] = Queue()
        self._ends: Queue[None] = Queue()
        self._numbers = itertools.count(1)

    # Connections

    def connect_by_certificate(self) -> "Stomp":
        """Connect without a login. :raises Refused: with the ERROR frame."""
        return self._connect(None, None)

    def connect(self, user: str | None = None, password: str | None = None, **headers: str) -> "Stomp":
        """Connect as the server's user by default. :raises Refused: with the ERROR frame."""
        return self._connect(user or self._server.user, password or self._server.password, **headers)

    def _connect(self, user: str | None, password: str | None, **headers: str) -> "Stomp":
        try:
            self.connection.connect(user, password, wait=True, headers=headers)
        except ConnectFailedException:
            self.connection.transport.running = False
            raise Refused(self.error()) from None
        return self

    def disconnect(self) -> None:
        """Send DISCONNECT; wait for the receipt and the close."""
        self.connection.disconnect(receipt="goodbye")
        self.wait_for_receipt("goodbye")
        self.wait_for_the_end()

    def vanish(self) -> None:
        """Close the socket without DISCONNECT, like a broken network."""
        self.connection.transport.socket.shutdown(socket.SHUT_RDWR)
        self.wait_for_the_end()

    def wait_for_the_end(self) -> None:
        """Wait until the connection is closed."""
        self._ends.get(timeout=ARRIVAL_TIMEOUT_S)

    def close(self) -> None:
        """Disconnect in any state, and end stomp.py's thread; safe to call twice.

        After an ERROR the server closes the connection, which stomp.py may notice between the check and the DISCONNECT.

        Over TLS stomp.py does not detect that the server closed the connection: its thread then polls the socket in a
        busy loop until the process ends, and slows down every later test.
        """
        if self.connection.is_connected():
            with suppress(Empty, OSError, NotConnectedException):
                self.connection.disconnect()
                self._ends.get(timeout=DISCONNECT_TIMEOUT_S)
        self.connection.transport.running = False

    # Frames

    def send(self, destination: str, body: bytes | str = b"hi", /, **headers: str) -> None:
        """Send and wait for the receipt; ``_`` in the names of ``headers`` becomes ``-``."""
        receipt = self._receipt()
        self.connection.send(destination, body, headers=_spelled(headers), receipt=receipt)
        self.wait_for_receipt(receipt)

    def subscribe(self, destination: str, id: str = "s", ack: str = "auto", **headers: str) -> None:
        """Subscribe and wait for the receipt."""
        receipt = self._receipt()
        self.connection.subscribe(destination, id=id, ack=ack, headers=_spelled(headers), receipt=receipt)
        self.wait_for_receipt(receipt)

    def unsubscribe(self, id: str = "s", **headers: str) -> None:
        """Unsubscribe and wait for the receipt."""
        receipt = self._receipt()
        self.connection.unsubscribe(id=id, headers=_spelled(headers), receipt=receipt)
        self.wait_for_receipt(receipt)

    def ack(self, message: Frame, transaction: str | None = None) -> None:
        """Acknowledge and wait for the receipt."""
        receipt = self._receipt()
        self.connection.ack(*self._named(message), transaction=transaction, receipt=receipt)
        self.wait_for_receipt(receipt)

    def nack(self, message: Frame, **headers: str) -> None:
        """Refuse and wait for the receipt; stomp.py has no NACK in 1.0."""
        receipt = self._receipt()
        self.connection.nack(*self._named(message), receipt=receipt, **headers)
        self.wait_for_receipt(receipt)

    def commit(self, transaction: str) -> None:
        """Commit and wait for the receipt."""
        receipt = self._receipt()
        self.connection.commit(transaction, receipt=receipt)
        self.wait_for_receipt(receipt)

    def next(self) -> Frame:
        """Return the next received message."""
        try:
            return self._messages.get(timeout=ARRIVAL_TIMEOUT_S)
        except Empty:
            raise AssertionError("no message was received in time") from None

    def bodies(self, count: int) -> list[bytes]:
        """Return the bodies of the next ``count`` messages."""
        return [self.next().body for _ in range(count)]

    def receives_nothing_more(self) -> bool:
        """Whether a message sent now on this connection is the next one received."""
        fence = f"fence-{self._receipt()}"
        self.subscribe(f"/topic/{fence}", id=fence)
        self.send(f"/topic/{fence}")
        is_next: bool = self.next().headers["destination"] == f"/topic/{fence}"
        return is_next

    def error(self) -> Frame:
        """Return the next ERROR frame."""
        return self._errors.get(timeout=ARRIVAL_TIMEOUT_S)

    def wait_for_receipt(self, wanted: str) -> None:
        """Wait for this receipt, which must be the next."""
        assert self._receipts.get(timeout=ARRIVAL_TIMEOUT_S) == wanted

    def _receipt(self) -> str:
        return f"r-{next(self._numbers)}"

    def _named(self, message: Frame) -> tuple[str, ...]:
        """Return the identifiers of a message in this version."""
        headers = message.headers
        if self._version == "1.2":
            return (headers["ack"],)
        return (headers["message-id"], headers["subscription"])[: 1 if self._version == "1.0" else 2]

    # Callbacks of stomp.py

    def on_connected(self, frame: Frame) -> None:
        self.welcome = frame.headers

    def on_message(self, frame: Frame) -> None:
        self._messages.put(frame)

    def on_receipt(self, frame: Frame) -> None:
        self._receipts.put(frame.headers["receipt-id"])

    def on_error(self, frame: Frame) -> None:
        self._errors.put(frame)

    def on_heartbeat(self) -> None:
        self.beats.put(None)

    def on_disconnected(self) -> None:
        self._ends.put(None)


def _spelled(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
