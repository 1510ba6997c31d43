"""The Twisted protocol of MQTT: moves bytes between a transport and a connection; the only use of Twisted here."""

from dataclasses import replace
from typing import Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, connectionDone
from twisted.python.failure import Failure

from gateway.kernel.broker.connections import TICKS_PER_S, ConnectionInfo
from gateway.logs import StructuredLog
from gateway.net.message_transport import is_web, page_of
from gateway.net.peer import MOST_RESTED, PeerProtocol
from gateway.net.turn import Turn
from gateway_mqtt.connection import Connection
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.meter import MeterCount
from gateway_mqtt.scope import PROTOCOLS
from gateway_mqtt.state import State

_log: Final = StructuredLog("mqtt")

#: RabbitMQ's product name for every MQTT client, because MQTT clients do not send one.
_PRODUCT: Final = "MQTT client"


class MqttServer(PeerProtocol):
    """The transport side of one connection, with its timers."""

    __slots__ = ("_meter", "_settled")

    protocol_name = "MQTT"

    def __init__(self, settings: MqttContext, turn: Turn) -> None:
        super().__init__(settings.broker, turn, _log, settings.login_timeout_s)
        self.io.connect(Connection(settings, self, self.io))
        self._meter = settings.meter
        self._settled: MeterCount | None = None

    @property
    def connection(self) -> Connection:
        """The connection. Only ``io`` refers to it, so that a lost connection leaves no reference cycle."""
        machine = self.io.machine
        assert isinstance(machine, Connection)
        return machine

    def connectionMade(self) -> None:
        """Start the connection."""
        super().connectionMade()
        self.connection.is_from_page = bool(page_of(self.transport))
        self._meter.register(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release the connection."""
        self._meter.unregister(self)
        super().connectionLost(reason)

    def count(self, tally: MeterCount) -> None:
        """Add the traffic of both directions since the last call of ``settle`` to ``tally``."""
        self._counted(tally)

    def settle(self, tally: MeterCount) -> None:
        """Do the same; ``count`` and ``settle`` do not add this traffic again."""
        settled = self._settled
        if settled is not None and self.octets == (settled.bytes_received, settled.bytes_sent):
            return  # it only woke to tick
        self._settled = self._counted(tally).shared()

    def _counted(self, tally: MeterCount) -> MeterCount:
        """Add the traffic that is not settled to ``tally``; return that since the connection opened."""
        traffic = MeterCount()
        traffic.bytes_received, traffic.bytes_sent = self.octets
        self.connection.count(traffic)
        tally.add(traffic)
        if self._settled is not None:
            tally.subtract(self._settled)
        return traffic

    def tick(self) -> int:
        """Check time limits and delayed refusals."""
        ticks = super().tick()
        if ticks:
            self._meter.rests(self)
            return ticks
        machine = self.io.machine
        if isinstance(machine, Connection) and machine.state is State.REFUSED:  # the tick may have ended it
            machine.count_down()
        return ticks

    def rested(self, ticks: int) -> None:
        """Count ticks in which the connection rested; it is awake."""
        super().rested(ticks)
        self._meter.wakes(self)

    def on_tick(self) -> None:
        """Close a connection that was silent for one and a half times its keep alive (MQTT-3.1.2-22)."""
        limit_s = self.connection.keep_alive_s
        if limit_s and self.silent > 1.5 * limit_s * TICKS_PER_S:
            self.connection.time_out()

    def ticks_to_rest(self) -> int:
        """Return the number of ticks until the keep alive ends."""
        limit_s = self.connection.keep_alive_s
        return int(1.5 * limit_s * TICKS_PER_S) - self.silent if limit_s else MOST_RESTED

    def info(self) -> ConnectionInfo:
        """Return the connection's data for listings."""
        machine, info = self.io.machine, super().info()
        if not isinstance(machine, Connection):  # a listing that takes several turns may call this after the end
            return info
        client_id = machine.client_id
        protocol = PROTOCOLS.get(machine.version, self.protocol_name)
        return replace(
            info,
            protocol=f"Web {protocol}" if is_web(self.transport) else protocol,
            client_properties={"client_id": client_id, "product": _PRODUCT},
            variables={"client_id": client_id},
            timeout_s=machine.keep_alive_s,
        )


class MqttFactory(Factory):
    """Creates the server side of each connection. A change of ``settings`` affects new connections only."""

    noisy = False

    def __init__(self, settings: MqttContext, turn: Turn) -> None:
        self.settings = settings
        self._turn = turn

    def buildProtocol(self, addr: IAddress | None) -> MqttServer:
        """Return the server side of a new connection."""
        return MqttServer(self.settings, self._turn)
