"""Harness for the AMQP state machine: a real broker on a store in memory, no sockets, no reactor, no clock.

``Gateway`` is the broker and its turns, ``Peer`` a client connection. A test sends frames and compares the answers.
The words are those of ``tests.protocols.peer_harness``.
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, ClassVar, Self

from pamqp import commands

from gateway.access import Access, CertificateSubject
from gateway.kernel.broker.connections import ChannelInfo, ConnectionInfo
from gateway.kernel.clock import Background, Clock
from gateway.kernel.messages.message import HeaderFormat, Value
from gateway.kernel.messages.native_header import NATIVE
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway_amqp.connection import Connection
from gateway_amqp.header import AMQP
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.tuning import PROTOCOL_HEADER
from gateway_memory import MemoryStore
from tests.protocols.amqp.frame_reader import EOF, FrameReader, ReceivedFrame
from tests.protocols.amqp.frames import ALL_CAPABILITIES, Sent, asked, start_ok, wire
from tests.protocols.broker_harness import ALL, BrokerHarness
from tests.protocols.peer_harness import PeerHarness


class StillClock:
    """A clock that stands still; no timer is ever due."""

    def __init__(self) -> None:
        self.background = Background(self)

    def wall_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic_s(self) -> float:
        return 0.0

    def call_later(self, delay_s: float, call: Callable[[], None]) -> "StillClock":
        return self

    def cancel(self) -> None:
        pass


class Gateway(BrokerHarness):
    """A broker for AMQP; ``limits`` are those of ``AmqpContext``. Time stands still, unless a ``clock`` is given."""

    formats: ClassVar[tuple[HeaderFormat, ...]] = (AMQP, NATIVE)

    def __init__(
        self,
        login: Access | None = None,
        *,
        store: MemoryStore | None = None,
        clock: Clock | None = None,
        **limits: Any,  # Any: each setting of its own type
    ) -> None:
        super().__init__(store, clock or StillClock())
        tokens = count(1)
        self.settings = AmqpContext(
            self.broker,
            login or self._access("/"),
            self._access,
            lambda: f"token-{next(tokens)}",
            **limits,
        )
        self.settle()

    def add_user(self, name: str, password: str, vhost: str, may: tuple[str, str, str] = ALL, *tags: Value) -> None:
        """Add a user; ``may`` are the patterns for configure, write and read."""
        self.put_user(name, password, *tags, vhost=vhost, may=may)

    def connect(self, **options: Any) -> "Peer":  # Any: those of Peer.open
        """Return a peer with an open connection and channel 1."""
        peer = Peer(self)
        peer.open(**options)
        peer.send(commands.Channel.Open())
        assert peer.receive() == ["Channel.OpenOk(channel_id='')"]
        return peer


class Peer(PeerHarness[Connection, ReceivedFrame]):
    """An AMQP client connection.

    With ``is_reading`` false it is congested: output for it stays in the outbox.
    """

    def __init__(
        self, gateway: Gateway, host: str = "127.0.0.1", certificate: CertificateSubject | None = None
    ) -> None:
        super().__init__(gateway, 5672, FrameReader(), EOF, host, certificate)
        self.gateway = gateway
        self._octets = 0
        self.join(Connection(gateway.settings, self, self.io))

    # Called by tests

    def open(
        self,
        user: str = "guest",
        password: str = "guest",
        vhost: str = "/",
        frame_max: int = 131_072,
        channel_max: int = 2047,
        heartbeat_s: int = 60,
        capabilities: Mapping[str, Value] = ALL_CAPABILITIES,
    ) -> None:
        """Perform the handshake."""
        self.send(PROTOCOL_HEADER)
        self.send(start_ok(f"\0{user}\0{password}", capabilities=capabilities))
        self.send(commands.Connection.TuneOk(channel_max, frame_max, heartbeat_s))
        self.send(asked(commands.Connection.Open, virtual_host=vhost))
        assert self.receive()[-1:] == ["Connection.OpenOk(known_hosts='')"]
        assert isinstance(self._reader, FrameReader)
        self._reader.frame_max = frame_max

    def send(self, *frames: Sent, channel: int = 1) -> Self:
        """Send the frames in one write; methods of the connection class use channel 0."""
        written = wire(*frames, channel=channel)
        self._octets += len(written)
        self._receive(written)
        return self

    def read_again(self) -> None:
        """Take the waiting output, and keep reading."""
        self.is_reading = True

    # Called by the broker

    @property
    def channel_count(self) -> int:
        return len(self.machine.channels.open_by_number)

    def info(self) -> ConnectionInfo:
        address = ("127.0.0.1", 5672, "127.0.0.1", 50000)
        return ConnectionInfo(
            "AMQP 0-9-1",
            "running",
            *address,
            False,
            0,
            "PLAIN",
            {},
            *self.machine.limits,
            60,
            (self._octets, 1),
            (0, 0),
        )

    def unsettled(self) -> list[tuple[ConsumedQueue, QueuedMessage, int]]:
        return self.machine.channels.unsettled()

    def channels(self) -> list[ChannelInfo]:
        return self.machine.channels.infos()

    def update_flow_control(self) -> None:
        alarms = self.gateway.broker.alarms
        if alarms and self.machine.has_published:
            self.machine.block(alarms.reason)
        elif not alarms:
            self.machine.unblock()

    def tick(self) -> None:
        pass
