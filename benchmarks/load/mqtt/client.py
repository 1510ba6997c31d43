"""A blocking MQTT 3.1.1 client that expects known bytes: reading means comparing."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.load.client_rig import BrokerRefused
from benchmarks.load.link import TIMEOUT_S
from benchmarks.load.mqtt import wire


class Client:
    """One connection without keep alive and with TCP_NODELAY. ``was_known`` means that the broker had kept a
    session.
    """

    def __init__(self, port: int, client_id: str, *, is_clean: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A timeout in the kernel: Python's own costs a poll before every call.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(TIMEOUT_S), 0))
        self.send(wire.connect(client_id, is_clean=is_clean))
        answer = self.read(wire.CONNACK_BYTES)
        if answer[0] != wire.CONNACK or answer[3]:
            raise BrokerRefused(f"CONNECT was answered by {answer.hex()}")
        self.was_known = bool(answer[2])

    def send(self, octets: bytes) -> None:
        """Send all of the data."""
        self.socket.sendall(octets)

    def read(self, size: int) -> bytes:
        """Read exactly this many bytes."""
        buffer = bytearray(size)
        self.read_into(memoryview(buffer))
        return bytes(buffer)

    def read_into(self, buffer: memoryview) -> None:
        """Fill the buffer. :raises OSError: if nothing arrives for a minute."""
        missing = len(buffer)
        while missing:
            received = self.socket.recv_into(buffer[-missing:])
            if not received:
                raise ConnectionError("the broker closed a connection under load")
            missing -= received

    def expect(self, octets: bytes) -> None:
        """Read exactly these bytes. :raises BrokerRefused: if others arrive."""
        if octets and (found := self.read(len(octets))) != octets:
            raise BrokerRefused(f"expected {octets[:16].hex()} ..., got {found[:16].hex()} ...")

    def subscribe(self, topic_filter: str, qos: int) -> None:
        """Subscribe to one filter, and require the QoS."""
        self.send(wire.subscribe(topic_filter, qos))
        self.expect(wire.packet(wire.SUBACK, b"\x00\x01" + bytes([qos])))

    def ping(self) -> None:
        """Wait for the answer to a ping: it follows everything before, and nothing else may come first."""
        self.send(wire.PINGREQ)
        self.expect(wire.PINGRESP)

    def close(self) -> None:
        """Disconnect and wait until the broker closes the connection, when its work for this client is done."""
        try:
            self.send(wire.DISCONNECT)
            while self.socket.recv(65536):
                pass
        finally:
            self.socket.close()


@contextmanager
def connected(port: int, client_id: str) -> Iterator[Client]:
    """Open a client with a clean session, and close it again."""
    client = Client(port, client_id)
    try:
        yield client
    finally:
        client.close()
