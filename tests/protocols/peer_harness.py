"""Harness of one client connection, independent of the protocol: no sockets, no reactor.

It is the machine's driver and one of the broker's connections; a ``ConnectionIO`` takes part in the turns. A protocol's
``dialogue.py`` adds the client's requests and the decoder of the answers.
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

FrameT = TypeVar("FrameT")
MachineT = TypeVar("MachineT", bound=Machine)


class Transport:
    """The interface of Twisted's transports that a ``SocketWriter`` without a socket uses."""

    dataBuffer = b""  # noqa: N815 - Twisted's name, as the others
    _tempDataBuffer: Sequence[bytes] = ()  # noqa: N815
    disconnecting = False

    def __init__(self, listener: "PeerHarness[Any, Any]") -> None:  # Any: of any protocol
        self._listener = listener

    def write(self, data: bytes) -> None:
        self._listener.take(data)

    def loseConnection(self) -> None:
        self._listener.take_end()

    def pauseProducing(self) -> None:
        pass

    def resumeProducing(self) -> None:
        pass

    def registerProducer(self, producer: object, streaming: bool) -> None:
        pass

    def unregisterProducer(self) -> None:
        pass


class DialogueGateway(Protocol):
    """The broker harness, as a connection uses it."""

    broker: Broker
    turn: Turn

    def settle(self) -> None:
        """End turns and commit until no more output follows."""
        ...

    def end_turn(self) -> None:
        """End the turn."""
        ...


class PeerHarness(Generic[MachineT, FrameT]):
    """One client connection. With ``is_reading`` false it is congested: output for it stays in the outbox.

    A subclass sets ``machine``, then calls ``join``.
    """

    machine: MachineT

    def __init__(
        self,
        gateway: DialogueGateway,
        port: int,
        host: str = "127.0.0.1",
        certificate: CertificateSubject | None = None,
    ) -> None:
        self.name = f"{host}:{len(gateway.broker.connections) + 40_000} -> 127.0.0.1:{port}"
        self.peer_host = host
        self.certificate = certificate
        self.log_lines: list[tuple[str, dict[str, object]]] = []
        self._is_reading = True
        self._gateway = gateway
        self._heard: list[FrameT] = []
        self.io = ConnectionIO(self, gateway.broker.journal, gateway.turn)
        self.io.writer = SocketWriter(Transport(self), self.io.congested)

    @property
    def is_reading(self) -> bool:
        """Whether the client reads its input."""
        return self._is_reading

    @is_reading.setter
    def is_reading(self, is_reading: bool) -> None:
        self._is_reading = is_reading
        self.io.congested(not is_reading)

    def take(self, data: bytes) -> None:
        """Receive output of the machine."""
        self._heard += self.read(data)

    def take_end(self) -> None:
        """Receive the end of the connection."""
        self._heard.append(self.closed)

    def join(self, machine: MachineT) -> None:
        """Register as one of the broker's connections."""
        self.machine = machine
        self.io.connect(machine)
        self._gateway.broker.connections.add(self)

    def go_on(self) -> None:
        """Continue with the input after a request that took several turns."""
        if self.machine.is_held:
            self.machine.receive(b"")

    def lose(self) -> None:
        """Lose the connection."""
        self._gateway.broker.connections.remove(self)
        self.machine.lost()
        self.io.detach()
        self._gateway.settle()

    # Overridden by subclasses

    def read(self, data: bytes) -> list[FrameT]:
        """Return the frames in these bytes."""
        raise NotImplementedError

    @property
    def closed(self) -> FrameT:
        """The value that stands for the end of the connection."""
        raise NotImplementedError

    def _taken(self) -> list[FrameT]:
        heard, self._heard = self._heard, []
        return heard

    # Driver

    def log(self, event: str, **details: object) -> None:
        self.log_lines.append((event, details))

    def hang_up(self) -> None:
        self.io.is_ending = True
        self.io.outbox.wake()

    def opened(self) -> None:
        self._gateway.broker.connections.entered(self)

    def publishing(self) -> None:
        self.update_flow_control()

    # Called by ``io``

    def fail(self) -> None:
        raise AssertionError("an internal error occurred")

    def update_reading(self) -> None:
        pass

    # Called by the broker

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
