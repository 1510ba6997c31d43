"""The Twisted protocol of AMQP: connects ``PeerProtocol`` with ``Connection``."""

from dataclasses import replace
from typing import Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from gateway.kernel.broker.connections import TICKS_PER_S, ChannelInfo, ConnectionInfo
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.logs import StructuredLog
from gateway.net.peer import MOST_RESTED, PeerProtocol
from gateway.net.turn import Turn
from gateway_amqp.connection import HEARTBEAT_FRAME, Connection
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.periodic_checks import check_consumer_timeouts, check_unsettled_size
from gateway_amqp.state import State

_log: Final = StructuredLog("amqp")


class AmqpServer(PeerProtocol):
    """The server side of one AMQP connection: heartbeats, ``connection.blocked``, and listings."""

    __slots__ = ()

    protocol_name = "AMQP 0-9-1"

    def __init__(self, settings: AmqpContext, turn: Turn) -> None:
        super().__init__(settings.broker, turn, _log, settings.login_timeout_s)
        self.io.connect(Connection(settings, self, self.io))

    @property
    def connection(self) -> Connection:
        """The machine while the connection is open. Only ``io`` refers to it, so that no reference cycle is left."""
        machine = self.io.machine
        assert isinstance(machine, Connection)
        return machine

    def block(self, reason: str) -> None:
        """Send ``connection.blocked`` to a client with that capability."""
        self.connection.block(reason)

    def unblock(self) -> None:
        """Send ``connection.unblocked``."""
        self.connection.unblock()

    def on_tick(self) -> None:
        """Check acknowledgement timeouts, unsettled sizes and heartbeats."""
        connection = self.connection
        check_consumer_timeouts(connection)
        check_unsettled_size(connection)
        if connection.heartbeat_s:
            self._check_heartbeats(connection.heartbeat_s)

    def ticks_to_rest(self) -> int:
        """Return the number of ticks until the next heartbeat; 0 with unsettled deliveries, which have time limits."""
        connection = self.connection
        if connection.has_unsettled or connection.outbox.is_full:
            return 0
        interval = connection.heartbeat_s * TICKS_PER_S
        return min((interval - 1) // 2 - self.quiet, 2 * interval - self.silent) if interval else MOST_RESTED

    def probe(self) -> None:
        """Send a heartbeat, which a peer without heartbeats ignores (4.2.7)."""
        self.send_ahead(HEARTBEAT_FRAME)

    def _check_heartbeats(self, interval_s: int) -> None:
        """Send a heartbeat after half an interval without output; give up after two without input (4.2.7)."""
        if self.silent > 2 * interval_s * TICKS_PER_S:
            self.give_up(f"missed heartbeats from client, timeout: {interval_s}s")
        elif 2 * self.quiet >= interval_s * TICKS_PER_S:
            self.send_ahead(HEARTBEAT_FRAME)

    # Used by listings

    @property
    def state(self) -> str:
        """The connection's state, by RabbitMQ's name."""
        machine = self.io.machine
        if not isinstance(machine, Connection):  # a listing that takes several turns may read this after the end
            return super().state
        if machine.state is not State.OPEN:
            return machine.state.name.lower()
        return "blocked" if machine.blocked_notice.is_given else super().state

    @property
    def channel_count(self) -> int:
        """The number of open channels."""
        machine = self.io.machine
        return len(machine.channels.open_by_number) if isinstance(machine, Connection) else 0

    def channels(self) -> list[ChannelInfo]:
        """Return the channels for listings."""
        machine = self.io.machine
        return machine.channels.infos() if isinstance(machine, Connection) else []

    def unsettled(self) -> list[tuple[ConsumedQueue, QueuedMessage, int]]:
        """Return the unsettled deliveries of all channels."""
        machine = self.io.machine
        return machine.channels.unsettled() if isinstance(machine, Connection) else []

    def info(self) -> ConnectionInfo:
        """Return the connection for listings."""
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
    """Creates the server side of each connection of a listener. ``settings`` apply to new connections."""

    noisy = False

    def __init__(self, settings: AmqpContext, turn: Turn) -> None:
        self.settings = settings
        self._turn = turn

    def buildProtocol(self, addr: IAddress | None) -> AmqpServer:
        """Return the server side of a new connection."""
        return AmqpServer(self.settings, self._turn)
