"""An AMQP client of single frames over a real socket; every wait has a time limit."""

import socket
import time
from collections.abc import Callable

from pamqp import commands
from pamqp.base import Frame

from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.interop.broker import Broker
from tests.protocols.amqp.frame_reader import FrameReader, Heard
from tests.protocols.amqp.frames import Sent, start_ok, wire

TIMEOUT_S = 15.0


class RawClient:
    """Sends frames on request, and reads only on request."""

    def __init__(self, broker: Broker) -> None:
        self.socket = socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S)
        self._ear = FrameReader()
        self.is_at_end = False

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def open(self, heartbeat_s: int = 0) -> "RawClient":
        """Perform the handshake and open channel 1."""
        self.send(PROTOCOL_HEADER)
        self.receive_method(commands.Connection.Start)
        self.send(start_ok("\0guest\0guest"), commands.Connection.TuneOk(2047, 131_072, heartbeat_s))
        self.send(commands.Connection.Open("/"), commands.Channel.Open())
        self.receive_method(commands.Channel.OpenOk)
        return self

    def send(self, *frames: Sent) -> None:
        self.socket.sendall(wire(*frames))

    def receive(self) -> list[Heard]:
        """Read once; set ``is_at_end`` when the broker closed."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        self.is_at_end = not data
        return self._ear.listen(data)

    def receive_method(self, method: type[Frame]) -> list[Heard]:
        """Read until a method of this kind was received."""
        return self.receive_until(lambda heard: isinstance(heard.method, method))

    def receive_until(self, is_it: Callable[[Heard], bool]) -> list[Heard]:
        """Read until a matching frame was received; return all frames up to it."""
        deadline = time.monotonic() + TIMEOUT_S
        heard: list[Heard] = []
        while True:
            fresh = self.receive()
            heard += fresh
            if any(map(is_it, fresh)):
                return heard
            assert time.monotonic() < deadline, f"not received, only {list(map(str, heard))[-5:]}"
            assert not self.is_at_end, f"connection closed early, after {list(map(str, heard))[-5:]}"

    def receive_all(self) -> list[Heard]:
        """Read until the broker closes."""
        heard: list[Heard] = []
        while not self.is_at_end:
            heard += self.receive()
        return heard
