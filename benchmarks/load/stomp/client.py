"""A small blocking STOMP client for use before and after a measurement, never during it."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.load.client_rig import Arrival, BrokerRefused
from benchmarks.load.link import TIMEOUT_S
from benchmarks.load.stomp import wire


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame from the broker, with its bytes."""

    verb: str
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class Message(Arrival):
    """A delivery; ``ack_beginning`` is the prefix of the number in the id for an ACK, empty in mode auto."""

    ack_beginning: bytes


class Client:
    """One connection without heart-beats and with TCP_NODELAY. Owns the ``unread`` bytes."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.unread = bytearray()
        self.open()

    def open(self) -> None:
        """Log in."""
        self.send(wire.connect())
        self.expect("CONNECTED")

    def close(self) -> None:
        """Drop the TCP connection."""
        self.socket.close()

    def quiet_socket(self) -> socket.socket:
        """Return the socket, to count frames from here on; everything read so far was consumed."""
        if self.unread.strip(b"\n"):
            raise BrokerRefused("the broker sent unexpected data")
        self.unread.clear()
        return self.socket

    def subscribe(self, destination: str, ack_mode: str) -> None:
        """Subscribe, and wait for the receipt."""
        self.send(wire.subscribe(destination, ack_mode, "subscribed"))
        self.expect("RECEIPT")

    def sync(self) -> None:
        """Return once the broker has processed everything sent: receipts come in order (STOMP 1.2, "RECEIPT")."""
        for verb in ("BEGIN", "ABORT"):
            self.send(wire.frame(verb, (("transaction", "sync"), ("receipt", verb))))
            self.expect("RECEIPT", receipt=verb)

    def read_message(self, body: bytes) -> Message:
        """Wait for one delivery with this body. :raises BrokerRefused: for anything else."""
        frame = self.expect("MESSAGE")
        if frame.body != body:
            raise BrokerRefused("the body of a message was changed")
        number = frame.headers["message-id"].rpartition("@@")[2]
        to_name = frame.headers.get("ack", "")
        return Message(int(number), frame.wire_bytes, to_name.removesuffix(number).encode())

    def expect(self, verb: str, receipt: str | None = None) -> Frame:
        """Wait for a frame of this verb, optionally with this receipt."""
        frame = self._read_frame()
        if frame.verb != verb or (receipt is not None and frame.headers.get("receipt-id") != receipt):
            raise BrokerRefused(f"expected {verb}, got {frame.verb} {dict(frame.headers)} {frame.body[:200]!r}")
        return frame

    def _read_frame(self) -> Frame:
        head = self._read_to(b"\n\n").lstrip(b"\n")
        verb, *lines = head.decode().split("\n")[:-2]
        headers = {name: value for name, _, value in (line.partition(":") for line in reversed(lines))}
        length = headers.get("content-length")
        body = self._read(int(length) + 1) if length is not None else self._read_to(wire.END)
        if not body.endswith(wire.END):
            raise BrokerRefused("a frame without NUL")
        return Frame(verb, headers, body[:-1], len(head) + len(body))

    def _read_to(self, delimiter: bytes) -> bytes:
        """Read up to and including a delimiter; line ends before a frame are skipped."""
        while (at := self.unread.find(delimiter, self._blank())) < 0:
            self.receive()
        return self._read(at + len(delimiter))

    def _blank(self) -> int:
        return len(self.unread) - len(self.unread.lstrip(b"\n"))

    def _read(self, size: int) -> bytes:
        while len(self.unread) < size:
            self.receive()
        octets = bytes(self.unread[:size])
        del self.unread[:size]
        return octets

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        self.socket.sendall(frame)

    def receive(self) -> None:
        """Wait for more data from the broker."""
        self.unread += self.received()

    def received(self) -> bytes:
        """Wait for octets. :raises ConnectionError: at the end of the connection."""
        chunk = self.socket.recv(65536)
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        return chunk


@contextmanager
def connected(port: int, kind: type[Client] = Client) -> Iterator[Client]:
    """Open a client of a kind and close it again."""
    client = kind(port)
    try:
        yield client
    finally:
        client.close()
