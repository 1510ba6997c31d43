"""The only contact of AMQP with Twisted: what ``PeerProtocol`` leaves to a protocol, for ``Connection``."""

from dataclasses import replace
from typing import Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from gateway.kernel.broker.connections import TICKS_PER_S, ChannelInfo, ConnectionInfo
from gateway.logs import StructuredLog
from gateway.net.peer import PeerProtocol
from gateway.net.turn import Turn
from gateway_amqp.connection import HEARTBEAT_FRAME, Connection
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.state import State

_log: Final = StructuredLog("amqp")


class AmqpServer(PeerProtocol):
    """The server side of one AMQP connection: heartbeats, ``connection.blocked``, and what listings show."""

    protocol_name = "AMQP 0-9-1"

    def __init__(self, settings: AmqpContext, turn: Turn) -> None:
        super().__init__(settings.broker, turn, _log, settings.login_timeout_s)
        self.io.connect(Connection(settings, self, self.io))

    @property
    def connection(self) -> Connection:
        """The machine while the peer is there. Only ``io`` refers to it, so that a lost connection leaves no cycle."""
        machine = self.io.machine
        assert isinstance(machine, Connection)
        return machine

    def block(self, reason: str) -> None:
        """Tell a client that can hear it that its publishes have to wait."""
        self.connection.block(reason)

    def unblock(self) -> None:
        """Tell it that they need not wait any more."""
        self.connection.unblock()

    def on_tick(self) -> None:
        """Mind consumers that do not settle, and heartbeats."""
        connection = self.connection
        connection.mind_consumers()
        connection.mind_unsettled()
        if connection.heartbeat_s:
            self._mind_heartbeats(connection.heartbeat_s)

    def probe(self) -> None:
        """Send a heartbeat, which a peer without heartbeats ignores (4.2.7)."""
        self.send_ahead(HEARTBEAT_FRAME)

    def _mind_heartbeats(self, interval_s: int) -> None:
        """Send a heartbeat after half an interval of quiet; give up after two of silence (4.2.7)."""
        if self.silent > 2 * interval_s * TICKS_PER_S:
            self.give_up(f"missed heartbeats from client, timeout: {interval_s}s")
        elif 2 * self.quiet >= interval_s * TICKS_PER_S:
            self.send_ahead(HEARTBEAT_FRAME)

    # What listings ask

    @property
    def state(self) -> str:
        """The state of the connection by the name RabbitMQ gives it."""
        machine = self.io.machine
        if not isinstance(machine, Connection):  # a list that takes several turns may ask after the end
            return super().state
        if machine.state is not State.OPEN:
            return machine.state.name.lower()
        return "blocked" if machine.is_blocked else super().state

    @property
    def channel_count(self) -> int:
        """How many channels are open."""
        machine = self.io.machine
        return machine.channel_count if isinstance(machine, Connection) else 0

    def channels(self) -> list[ChannelInfo]:
        """Tell what a listing shows of its channels."""
        machine = self.io.machine
        return machine.channel_infos() if isinstance(machine, Connection) else []

    def info(self) -> ConnectionInfo:
        """Tell what a listing shows of it."""
        machine = self.io.machine
        if not isinstance(machine, Connection):
            return super().info()
        frame_max, channel_max = machine.limits
        return replace(
            super().info(),
            auth_mechanism=machine.identity.mechanism,
            client_properties=machine.identity.client_properties,
            frame_max=frame_max,
            channel_max=channel_max,
            timeout_s=machine.heartbeat_s,
        )


class AmqpFactory(Factory):
    """Makes the server side of each connection of a listener. ``settings`` hold for connections to come."""

    noisy = False

    def __init__(self, settings: AmqpContext, turn: Turn) -> None:
        self.settings = settings
        self._turn = turn

    def buildProtocol(self, addr: IAddress | None) -> AmqpServer:
        """Return the server side of a new connection."""
        return AmqpServer(self.settings, self._turn)
