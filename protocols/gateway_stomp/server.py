"""The Twisted protocol of STOMP: connects ``PeerProtocol`` with ``Connection``."""

from dataclasses import replace
from math import ceil
from typing import Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from gateway.kernel.broker.connections import TICKS_PER_S, ChannelInfo, ConnectionInfo
from gateway.kernel.messages.message import Value
from gateway.logs import StructuredLog
from gateway.net.message_transport import is_web
from gateway.net.peer import MOST_RESTED, PeerProtocol
from gateway.net.turn import Turn
from gateway_stomp.connection import Connection
from gateway_stomp.frames import HEARTBEAT
from gateway_stomp.listener_context import StompContext

_log: Final = StructuredLog("stomp")


class StompServer(PeerProtocol):
    """The transport and timers of one STOMP connection."""

    __slots__ = ()

    protocol_name = "STOMP"

    def __init__(self, settings: StompContext, turn: Turn) -> None:
        super().__init__(settings.broker, turn, _log, settings.login_timeout_s)
        self.io.connect(Connection(settings, self, self.io))

    @property
    def connection(self) -> Connection:
        """The machine while the connection is open. Only ``io`` refers to it, so that no reference cycle is left."""
        machine = self.io.machine
        assert isinstance(machine, Connection)
        return machine

    def on_tick(self) -> None:
        """Check acknowledgement timeouts and heart-beats (1.2, "Heart-beating").

        A heart-beat is sent after half an interval without output; a client is dropped after two intervals without
        input.
        """
        connection = self.connection
        connection.check_consumer_timeouts()
        promised = connection.handshake.heartbeats
        if promised.expect_s and self.silent > 2 * promised.expect_s * TICKS_PER_S:
            self.give_up(f"missed heartbeats from client, timeout: {promised.expect_s}s")
        elif promised.send_s and 2 * self.quiet >= promised.send_s * TICKS_PER_S:
            self.send_ahead(HEARTBEAT)

    def ticks_to_rest(self) -> int:
        """Return the number of ticks until the next heart-beat; 0 with unsettled deliveries, which have time limits."""
        if self.connection.has_unsettled:
            return 0
        promised = self.connection.handshake.heartbeats
        expected = int(2 * promised.expect_s * TICKS_PER_S) - self.silent if promised.expect_s else MOST_RESTED
        owed = ceil(promised.send_s * TICKS_PER_S / 2) - 1 - self.quiet if promised.send_s else MOST_RESTED
        return min(expected, owed)

    def probe(self) -> None:
        """Send a heart-beat: an end of line between two frames."""
        if self.connection.conversation is not None:
            self.send_ahead(HEARTBEAT)

    def channels(self) -> list[ChannelInfo]:
        """Return the only channel for listings; a listing that takes several turns may call this after the end."""
        machine = self.io.machine
        return machine.channel_infos() if isinstance(machine, Connection) else []

    def info(self) -> ConnectionInfo:
        """Return the connection for listings."""
        machine = self.io.machine
        if not isinstance(machine, Connection):
            return super().info()
        handshake, conversation = machine.handshake, machine.conversation
        protocol = self.protocol_name if conversation is None else handshake.version.protocol
        properties: dict[str, Value] = {"product": "STOMP client"}
        if conversation is not None:
            properties["session"] = conversation.scope.session
        if handshake.client_id:
            properties["client_id"] = handshake.client_id
        return replace(
            super().info(),
            protocol=f"Web {protocol}" if is_web(self.transport) else protocol,
            auth_mechanism=handshake.mechanism,
            client_properties=properties,
            variables={"client_id": handshake.client_id} if handshake.client_id else {},
            timeout_s=handshake.heartbeats.expect_s,
        )


class StompFactory(Factory):
    """Creates the server side of each connection of a listener. ``settings`` apply to new connections."""

    noisy = False

    def __init__(self, settings: StompContext, turn: Turn) -> None:
        self.settings = settings
        self._turn = turn

    def buildProtocol(self, addr: IAddress | None) -> StompServer:
        """Return the server side of a new connection."""
        return StompServer(self.settings, self._turn)
