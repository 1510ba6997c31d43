"""Somebody at the other end of a machine, whatever it speaks: no sockets, no reactor.

It is the machine's driver and one of the broker's connections; a line takes its part in turns. A protocol's
``dialogue.py`` adds what its clients say, and how what they hear is read.
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
    """What a wire that has no socket uses of Twisted's transports."""

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
    """What it asks of the gateway it is connected to."""

    broker: Broker
    turn: Turn

    def settle(self) -> None:
        """End turns and commit until everything has had its consequences."""
        ...

    def end_turn(self) -> None:
        """End the turn."""
        ...


class OtherEnd(Generic[Spoken, Heard]):
    """One peer. With ``is_reading`` false its way is congested: what is sent to it stays in the outbox.

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
        """Whether it takes what it is sent."""
        return self._is_reading

    @is_reading.setter
    def is_reading(self, is_reading: bool) -> None:
        self._is_reading = is_reading
        self.io.congested(not is_reading)

    def take(self, data: bytes) -> None:
        """Hear what was sent."""
        self._heard += self.read(data)

    def take_end(self) -> None:
        """Hear that nothing more is."""
        self._heard.append(self.closed)

    def join(self, machine: Spoken) -> None:
        """Be one of the broker's connections."""
        self.machine = machine
        self.io.connect(machine)
        self._house.broker.connections.add(self)

    def go_on(self) -> None:
        """Serve the machine again: it is done with a request that took several turns."""
        if self.machine.is_held:
            self.machine.receive(b"")

    def lose(self) -> None:
        """The transport breaks."""
        self._house.broker.connections.remove(self)
        self.machine.lost()
        self.io.cut()
        self._house.settle()

    # What a subclass adds

    def read(self, data: bytes) -> list[Heard]:
        """Return what these bytes say."""
        raise NotImplementedError

    @property
    def closed(self) -> Heard:
        """What stands for the end of the connection."""
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

    # What the broker asks of any peer

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
