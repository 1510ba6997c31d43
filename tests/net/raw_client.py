"""An AMQP client of single frames over a real socket; every wait has a time limit."""

from typing import Self

from pamqp import commands
from pamqp.base import Frame

from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.interop.broker import Broker
from tests.protocols.amqp.frame_reader import FrameReader, ReceivedFrame
from tests.protocols.amqp.frames import Sent, start_ok, wire
from tests.protocols.socket_harness import SocketHarness


class RawClient(SocketHarness[ReceivedFrame]):
    """Sends frames on request, and reads only on request."""

    def __init__(self, broker: Broker) -> None:
        super().__init__((broker.host, broker.port), FrameReader())

    def open(self, heartbeat_s: int = 0) -> Self:
        """Perform the handshake and open channel 1."""
        self.send(PROTOCOL_HEADER)
        self.receive_method(commands.Connection.Start)
        self.send(start_ok("\0guest\0guest"), commands.Connection.TuneOk(2047, 131_072, heartbeat_s))
        self.send(commands.Connection.Open("/"), commands.Channel.Open())
        self.receive_method(commands.Channel.OpenOk)
        return self

    def send(self, *frames: Sent) -> Self:
        """Send the frames in one write, on channel 1."""
        return super().send(wire(*frames))

    def receive_method(self, method: type[Frame]) -> list[ReceivedFrame]:
        """Read until a method of this kind was received."""
        return self.receive_until(lambda received: isinstance(received.method, method))
