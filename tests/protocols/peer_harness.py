"""Harness of one client connection, independent of the protocol: no sockets, no reactor.

It is the machine's driver and one of the broker's connections; a ``ConnectionIO`` takes part in the turns. A protocol's
``dialogue.py`` adds the client's requests, its ``frame_reader.py`` decodes the answers. All dialogues use these words:

==================  ============================================================================
``send``            send frames in one write
``receive``         all received frames as lines, after all turns and commits
``receive_frames``  the same as values
``receive_now``     the frames of this turn as lines, without a commit
``request``         ``send``, then ``receive``; ``request_frames`` returns values
``lose``            lose the connection
==================  ============================================================================
"""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from gateway.access import CertificateSubject
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connections import ChannelInfo, ConnectionInfo, PeerLoad
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.net.connection_io import ConnectionIO
from gateway.net.machine import Machine
from gateway.net.socket_writer import SocketWriter
from gateway.net.turn import Turn

FrameT = TypeVar("FrameT")
MachineT = TypeVar("MachineT", bound=Machine)


class Reader(Protocol[FrameT]):
    """A decoder of the machine's output; an invalid frame fails the test."""

    def feed(self, data: bytes) -> list[FrameT]:
        """Return the frames that ``data`` completes."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether no frame is incomplete."""
        ...


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

    ``reader`` decodes the machine's output, ``closed`` is the value that stands for the end of the connection. A
    subclass calls ``join`` with its machine.
    """

    machine: MachineT

    def __init__(
        self,
        gateway: DialogueGateway,
        port: int,
        reader: Reader[FrameT],
        closed: FrameT,
        host: str = "127.0.0.1",
        certificate: CertificateSubject | None = None,
    ) -> None:
        self.name = f"{host}:{len(gateway.broker.connections) + 40_000} -> 127.0.0.1:{port}"
        self.peer_host = host
        self.is_resumed = False
        self.is_kept = False
        self.certificate = certificate
        self.log_lines: list[tuple[str, dict[str, object]]] = []
        self._is_reading = True
        self._gateway = gateway
        self._acting = gateway.broker.clock.background.acting
        self._reader = reader
        self._closed = closed
        self._received: list[FrameT] = []
        self._octets_out = 0
        self.io = ConnectionIO(self, gateway.broker.journal, gateway.turn)
        self.io.writer = SocketWriter(Transport(self), self.io)

    @property
    def is_reading(self) -> bool:
        """Whether the client reads its input."""
        return self._is_reading

    @is_reading.setter
    def is_reading(self, is_reading: bool) -> None:
        self._is_reading = is_reading
        self.io.congested(not is_reading)

    # Called by tests

    def send(self, *frames: bytes) -> Self:
        """Send the frames in one write."""
        self._receive(b"".join(frames))
        return self

    def receive(self) -> list[str]:
        """Return all received frames as lines, after all turns and commits."""
        return [str(frame) for frame in self.receive_frames()]

    def receive_frames(self) -> list[FrameT]:
        """Return the same as values."""
        self._gateway.settle()
        assert self._reader.is_complete
        return self._taken()

    def receive_now(self) -> list[str]:
        """Return the frames of this turn as lines, without a commit."""
        self._gateway.end_turn()
        return [str(frame) for frame in self._taken()]

    def request(self, *frames: bytes) -> list[str]:
        """Send the frames in one write; return the answers as lines."""
        return [str(frame) for frame in self.request_frames(*frames)]

    def request_frames(self, *frames: bytes) -> list[FrameT]:
        """Send the frames in one write; return the answers as values."""
        self.send(*frames)
        return self.receive_frames()

    def join(self, machine: MachineT) -> None:
        """Register as one of the broker's connections."""
        self.machine = machine
        self.io.connect(machine)
        self._gateway.broker.connections.add(self)

    def go_on(self) -> None:
        """Continue with the input after a request that took several turns."""
        if self.machine.is_held:
            self._receive(b"")

    def _receive(self, data: bytes) -> None:
        with self._acting.being(self.machine):
            self.machine.receive(data)

    def lose(self) -> None:
        """Lose the connection."""
        self._gateway.broker.connections.remove(self)
        with self._acting.being(self.machine):
            self.machine.lost()
        self.io.detach()
        self._gateway.settle()

    # Called by the transport

    def take(self, data: bytes) -> None:
        """Receive output of the machine."""
        self._octets_out += len(data)
        self._received += self._reader.feed(data)

    def take_end(self) -> None:
        """Receive the end of the connection."""
        self._received.append(self._closed)

    def _taken(self) -> list[FrameT]:
        received, self._received = self._received, []
        return received

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
    def octets(self) -> tuple[int, int]:
        return self.info().received[0], self._octets_out

    def info(self) -> ConnectionInfo:
        raise NotImplementedError

    @property
    def channel_count(self) -> int:
        return 0

    def channels(self) -> list[ChannelInfo]:
        return []

    def load(self) -> PeerLoad | None:
        return self.machine.load()

    def unsettled(self) -> Iterable[tuple[ConsumedQueue, QueuedMessage, int]]:
        return self.machine.unsettled()

    def force_close(self, reason: str) -> None:
        self.machine.force_close(reason)

    def fail_confirms(self) -> None:
        self.machine.fail_confirms()

    def update_flow_control(self) -> None:
        pass
