"""The client side of a protocol test: no sockets, no reactor.

It is the machine's driver and a connection of the broker, with a line in its event loop turns. The ``dialogue.py`` of a
protocol adds the packets of its clients and the decoding of the answers.
"""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from gateway.access import CertificateSubject
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connections import ChannelInfo
from gateway.net.connection_io import ConnectionIO
from gateway.net.machine import Machine
from gateway.net.socket_writer import SocketWriter
from gateway.net.turn import Turn

Heard = TypeVar("Heard")


Spoken = TypeVar("Spoken", bound=Machine)


class Transport:
    """The methods of a Twisted transport that a wire without a socket needs."""

    dataBuffer = b""  # noqa: N815 - Twisted's name, as the others
    _tempDataBuffer: Sequence[bytes] = ()  # noqa: N815

    def __init__(self, listener: "OtherEnd[Any, Any]") -> None:  # Any: it does not matter what is spoken
        self._listener = listener

    def write(self, data: bytes) -> None:
        self._listener.take(data)

    def loseConnection(self) -> None:
        self._listener.take_end()

    def registerProducer(self, producer: object, streaming: bool) -> None:
        pass

    def unregisterProducer(self) -> None:
        pass


class DialogueGateway(Protocol):
    """The gateway as seen by its clients."""

    broker: Broker
    turn: Turn

    def settle(self) -> None:
        """End turns and commit until nothing more happens."""
        ...

    def end_turn(self) -> None:
        """End the turn."""
        ...


class OtherEnd(Generic[Spoken, Heard]):
    """One peer. With ``is_reading`` false the connection is congested: the server's data stays in the outbox.

    A subclass sets ``machine``, then calls ``join``.
    """

    machine: Spoken

    def __init__(
        self, house: DialogueGateway, port: int, host: str = "127.0.0.1", certificate: CertificateSubject | None = None
    ) -> None:
        self.name = f"{host}:{len(house.broker.connections) + 40_000} -> 127.0.0.1:{port}"
        self.peer_host = host
        self.certificate = certificate
        self.log_lines: list[tuple[str, dict[str, object]]] = []
        self._is_reading = True
        self._house = house
        self._heard: list[Heard] = []
        self.io = ConnectionIO(self, house.broker.journal, house.turn)
        self.io.writer = SocketWriter(Transport(self), self.io.congested)

    @property
    def is_reading(self) -> bool:
        """Whether it accepts data."""
        return self._is_reading

    @is_reading.setter
    def is_reading(self, is_reading: bool) -> None:
        self._is_reading = is_reading
        self.io.congested(not is_reading)

    def take(self, data: bytes) -> None:
        """Receive data."""
        self._heard += self.read(data)

    def take_end(self) -> None:
        """Receive the end of the connection."""
        self._heard.append(self.closed)

    def join(self, machine: Spoken) -> None:
        """Register as one of the broker's connections."""
        self.machine = machine
        self.io.connect(machine)
        self._house.broker.connections.add(self)

    def go_on(self) -> None:
        """Continue the machine after a request that took several turns."""
        if self.machine.is_held:
            self.machine.receive(b"")

    def lose(self) -> None:
        """Lose the transport."""
        self._house.broker.connections.remove(self)
        self.machine.lost()
        self.io.cut()
        self._house.settle()

    # For subclasses

    def read(self, data: bytes) -> list[Heard]:
        """Decode these bytes."""
        raise NotImplementedError

    @property
    def closed(self) -> Heard:
        """The value for the end of the connection."""
        raise NotImplementedError

    def _taken(self) -> list[Heard]:
        heard, self._heard = self._heard, []
        return heard

    # Driver

    def log(self, event: str, **details: object) -> None:
        self.log_lines.append((event, details))

    def hang_up(self) -> None:
        self.io.is_ending = True
        self.io.outbox.wake()

    def opened(self) -> None:
        self._house.broker.connections.entered(self)

    def publishing(self) -> None:
        self.update_flow_control()

    # Called by ``io``

    def fail(self) -> None:
        raise AssertionError("an internal error occurred")

    def update_reading(self) -> None:
        pass

    # Interface of a connection

    @property
    def vhost_name(self) -> str:
        return self.machine.vhost.name if self.machine.vhost is not None else ""

    @property
    def user_name(self) -> str:
        return self.machine.user_name

    @property
    def channel_count(self) -> int:
        return 0

    def channels(self) -> list[ChannelInfo]:
        return []

    def force_close(self, reason: str) -> None:
        self.machine.force_close(reason)

    def fail_confirms(self) -> None:
        self.machine.fail_confirms()

    def update_flow_control(self) -> None:
        pass
