"""A small blocking AMQP client for use before and after a measurement, never during it."""

import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.client_rig import Arrival, BrokerRefused
from benchmarks.load.link import TIMEOUT_S
from benchmarks.load.workloads import AMQP

#: Small enough for both sides' socket buffers.
DECLARED_AT_A_TIME: Final = 500

#: Time between two attempts to connect to a broker that is starting, in seconds.
_POLL_S: Final = 0.02

CONNECTION_CLOSE = (10, 50)
CHANNEL_CLOSE = (20, 40)
BASIC_DELIVER = (60, 60)
GET_EMPTY = b"\x00\x3c\x00\x48"


class Client:
    """One connection with one open channel, heartbeats off and TCP_NODELAY on."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = bytearray()
        self.server_properties = self._open()

    def close(self) -> None:
        """Drop the TCP connection."""
        self.socket.close()

    def quiet_socket(self) -> socket.socket:
        """Return the socket, to count bytes from here on; everything read so far was consumed."""
        if self._unread:
            raise BrokerRefused("the broker sent unexpected data")
        return self.socket

    def call(self, class_id: int, method_id: int, arguments: bytes = b"", channel: int = wire.CHANNEL) -> bytes:
        """Send a method and return the arguments of its -ok method, which by convention has the next id."""
        self.socket.sendall(wire.method(class_id, method_id, arguments, channel))
        return self._expect(class_id, method_id + 1)

    def declare_exchange(self, name: str, kind: str) -> None:
        """Declare a transient exchange."""
        self.call(40, 10, b"\x00\x00" + wire.short_string(name) + wire.short_string(kind) + b"\x00" + bytes(4))

    def delete_exchange(self, name: str) -> None:
        """Delete an exchange, bound or not."""
        self.call(40, 20, b"\x00\x00" + wire.short_string(name) + b"\x00")

    def declare_queue(
        self,
        name: str,
        *,
        durable: bool = False,
        passive: bool = False,
        arguments: Mapping[str, str | int] = MappingProxyType({}),
    ) -> int:
        """Declare a queue (or check it passively); return the number of ready messages."""
        self.socket.sendall(_queue_declare(name, passive | durable << 1, arguments))
        return self._read_declared()

    def declare_queues(self, names: Sequence[str], arguments: Mapping[str, str | int] | None = None) -> None:
        """Declare very many durable queues, many at a time, because each one alone would wait for the disk."""
        for start in range(0, len(names), DECLARED_AT_A_TIME):
            some = names[start : start + DECLARED_AT_A_TIME]
            self.socket.sendall(b"".join(_queue_declare(name, 2, arguments or {}) for name in some))
            for _ in some:
                self._read_declared()

    def bind_queue(
        self, queue: str, exchange: str, routing_key: str, arguments: Mapping[str, str | int] | None = None
    ) -> None:
        """Bind a queue to an exchange."""
        names = wire.short_string(queue) + wire.short_string(exchange) + wire.short_string(routing_key)
        self.call(50, 20, b"\x00\x00" + names + b"\x00" + wire.table(arguments or {}))

    def delete_queue(self, name: str) -> int:
        """Delete a queue, used or not; return the number of messages deleted with it."""
        answer = self.call(50, 40, b"\x00\x00" + wire.short_string(name) + b"\x00")
        return int.from_bytes(answer[:4], "big")

    def confirm_select(self) -> None:
        """Enable publisher confirms on the channel."""
        self.call(85, 10, b"\x00")

    def consume(self, queue: str, *, no_ack: bool, arguments: Mapping[str, str | int] = MappingProxyType({})) -> None:
        """Start a consumer, with unlimited prefetch unless limited before."""
        names = wire.short_string(queue) + wire.short_string("bench")
        self.call(60, 20, b"\x00\x00" + names + bytes([no_ack << 1]) + wire.table(arguments))

    def cancel(self) -> None:
        """Cancel the consumer."""
        self.call(60, 30, wire.short_string("bench") + b"\x00")

    def read_arrival(self) -> Arrival:
        """Wait for one whole delivery: deliver, header and all body frames."""
        arguments = self._expect(*BASIC_DELIVER)
        (tag,) = struct.unpack_from(">Q", arguments, 1 + arguments[0])
        _, header = self._read_frame()
        (missing,) = struct.unpack_from(">Q", header, 4)
        wire_bytes = len(arguments) + 4 + len(header) + 2 * wire.FRAME_OVERHEAD
        while missing:
            _, body = self._read_frame()
            missing -= len(body)
            wire_bytes += len(body) + wire.FRAME_OVERHEAD
        return Arrival(int(tag), wire_bytes)

    def got(self) -> bool:
        """Wait for the answer to basic.get; return whether it was a message, and read all of its frames."""
        _, payload = self._read_frame()
        if payload[:4] == GET_EMPTY:
            return False
        _, header = self._read_frame()
        (missing,) = struct.unpack_from(">Q", header, 4)
        while missing:
            missing -= len(self._read_frame()[1])
        return True

    def read_confirm(self) -> int:
        """Wait for one basic.ack from the broker; return the delivery tag it confirms."""
        return int.from_bytes(self._expect(60, 80)[:8], "big")

    def limit_credit(self, messages: int) -> None:
        """Limit the unacknowledged messages of the next consumer (basic.qos)."""
        self.call(60, 10, struct.pack(">IHB", 0, messages, 0))

    def take_unread(self) -> int:
        """Discard bytes that were read after the last answer; return their number."""
        size = len(self._unread)
        self._unread.clear()
        return size

    def _open(self) -> bytes:
        """Log in as guest and open the channel; return the raw server properties."""
        self.socket.sendall(wire.PROTOCOL_HEADER)
        start = self._expect(10, 10)
        login = wire.short_string("PLAIN") + wire.long_string(b"\x00guest\x00guest") + wire.short_string("en_US")
        self.socket.sendall(wire.method(10, 11, bytes(4) + login, channel=0))
        channel_max, frame_max = struct.unpack_from(">HI", self._expect(10, 30))
        # Heartbeat 0: a heartbeat among the deliveries would falsify the byte count.
        self.socket.sendall(wire.method(10, 31, struct.pack(">HIH", channel_max, frame_max, 0), channel=0))
        self.call(10, 40, wire.short_string("/") + b"\x00\x00", channel=0)
        self.call(20, 10, b"\x00")
        return start

    def _read_declared(self) -> int:
        answer = self._expect(50, 11)
        (waiting,) = struct.unpack_from(">I", answer, 1 + answer[0])
        return int(waiting)

    def _expect(self, class_id: int, method_id: int) -> bytes:
        kind, payload = self._read_frame()
        found = struct.unpack_from(">HH", payload)
        if kind == wire.METHOD and found == (class_id, method_id):
            return payload[4:]
        if found in (CONNECTION_CLOSE, CHANNEL_CLOSE):
            raise BrokerRefused(payload[7 : 7 + payload[6]].decode(errors="replace"))
        raise BrokerRefused(f"expected method {class_id}.{method_id}, got frame type {kind}, method {found}")

    def _read_frame(self) -> tuple[int, bytes]:
        kind, _, size = struct.unpack(">BHI", self._read(wire.FRAME_HEAD))
        payload = self._read(size + 1)
        if payload[-1] != wire.FRAME_END:
            raise BrokerRefused("a frame without the frame-end octet")
        return kind, payload[:-1]

    def _read(self, size: int) -> bytes:
        while len(self._unread) < size:
            chunk = self.socket.recv(65536)
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            self._unread += chunk
        octets = bytes(self._unread[:size])
        del self._unread[:size]
        return octets


def _opened(port: int) -> Client:
    """Open a connection, once the broker has read its store: until then it refuses them."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return Client(port)
        except BrokerRefused as refusal:
            if "the broker is starting" not in str(refusal) or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)


@contextmanager
def connected(port: int) -> Iterator[Client]:
    """Open a client and close it again."""
    client = _opened(port)
    try:
        yield client
    finally:
        client.close()


def _queue_declare(name: str, bits: int, arguments: Mapping[str, str | int]) -> bytes:
    return wire.method(50, 10, b"\x00\x00" + wire.short_string(name) + bytes([bits]) + wire.table(arguments))


def amqp_product(ports: Mapping[str, int]) -> str:
    """Return a broker's product name and version from its connection.start."""
    with connected(ports[AMQP]) as client:
        return _product_of(client)


def _product_of(client: Client) -> str:
    found = {
        key.decode(): client.server_properties[match.end() + 4 : match.end() + 4 + size].decode()
        for key in (b"product", b"version", b"broker", b"broker_version")
        if (match := re.search(bytes([len(key)]) + key + b"S", client.server_properties))
        and (size := int.from_bytes(client.server_properties[match.end() : match.end() + 4], "big"))
    }
    product = found.get("broker", found.get("product", "unknown"))
    return f"{product} {found.get('broker_version', found.get('version', ''))}".strip()
