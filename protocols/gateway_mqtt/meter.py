"""Traffic counters of all MQTT clients of a node.

Each connection keeps its own counters. They are summed only on request, so publishers and subscribers pay nothing.
Those of a connection that rests are added up when it begins to rest, so that a sum reads only the others.
"""

from functools import lru_cache
from typing import Final, Protocol

from gateway.kernel.counters import Counters
from gateway.kernel.traffic import QOS0_QUEUE, VhostTraffic

#: Names of the counters. Packets are of all types; payloads are those of PUBLISH, in bytes.
COUNTED: Final = (
    *("bytes_received", "bytes_sent", "packets_received", "packets_sent"),
    *("publishes_received", "publishes_sent", "payload_received", "payload_sent"),
)


class MeterCount:
    """A sum of counters; each connection adds its own."""

    __slots__ = COUNTED

    def __init__(self) -> None:
        self.bytes_received = 0
        self.bytes_sent = 0
        self.packets_received = 0
        self.packets_sent = 0
        self.publishes_received = 0
        self.publishes_sent = 0
        self.payload_received = 0
        self.payload_sent = 0

    def copied(self) -> "MeterCount":
        """Return a copy."""
        copy = MeterCount()
        for name in COUNTED:
            setattr(copy, name, getattr(self, name))
        return copy

    def add(self, other: "MeterCount") -> None:
        """Add other counts; each is written out, because that takes a tenth of a loop over the names."""
        self.bytes_received += other.bytes_received
        self.bytes_sent += other.bytes_sent
        self.packets_received += other.packets_received
        self.packets_sent += other.packets_sent
        self.publishes_received += other.publishes_received
        self.publishes_sent += other.publishes_sent
        self.payload_received += other.payload_received
        self.payload_sent += other.payload_sent

    def subtract(self, other: "MeterCount") -> None:
        """Subtract other counts."""
        self.bytes_received -= other.bytes_received
        self.bytes_sent -= other.bytes_sent
        self.packets_received -= other.packets_received
        self.packets_sent -= other.packets_sent
        self.publishes_received -= other.publishes_received
        self.publishes_sent -= other.publishes_sent
        self.payload_received -= other.payload_received
        self.payload_sent -= other.payload_sent

    def shared(self) -> "MeterCount":
        """Return equal counts that must not change: connections of a fleet that rest have many in common."""
        octets = self.bytes_received, self.bytes_sent
        packets = self.packets_received, self.packets_sent, self.publishes_received, self.publishes_sent
        return _shared(octets, packets, (self.payload_received, self.payload_sent))


@lru_cache(4096)
def _shared(octets: tuple[int, int], packets: tuple[int, int, int, int], payload: tuple[int, int]) -> MeterCount:
    shared = MeterCount()
    shared.bytes_received, shared.bytes_sent = octets
    shared.packets_received, shared.packets_sent, shared.publishes_received, shared.publishes_sent = packets
    shared.payload_received, shared.payload_sent = payload
    return shared


#: What clients have drained that have no traffic yet; it is only read.
_NONE: Final = Counters()


class ClientCounters:
    """The messages one client published and received, and the bytes of their payloads.

    ``deliver`` and ``deliver_no_ack`` are those sent from queues with acknowledgements and without, ``redeliver`` those
    of them that were sent before, ``ack`` those that the client acknowledged.
    """

    __slots__ = (
        *("ack", "deliver", "deliver_no_ack", "payload_received", "payload_sent", "publish", "redeliver"),
        *("_drained_acknowledged", "_drained_unacknowledged"),
    )

    def __init__(self) -> None:
        self.publish = 0
        self.deliver = 0
        self.deliver_no_ack = 0
        self.redeliver = 0
        self.ack = 0
        self._drained_acknowledged = _NONE
        self._drained_unacknowledged = _NONE
        self.payload_received = 0
        self.payload_sent = 0

    @property
    def delivered(self) -> int:
        """All messages sent to the client."""
        return self.deliver + self.deliver_no_ack

    def drain(self, protocol: str, traffic: VhostTraffic) -> None:
        """Add the deliveries since the last call to the totals of the virtual host."""
        if not (self.deliver or self.deliver_no_ack or self.ack):
            return
        acknowledged, unacknowledged = Counters(), Counters()
        acknowledged.deliver, acknowledged.ack, acknowledged.redeliver = self.deliver, self.ack, self.redeliver
        unacknowledged.deliver_no_ack = self.deliver_no_ack
        if self.deliver or self.ack:
            traffic.delivered[protocol, "classic"].add_increase(acknowledged, self._drained_acknowledged)
        if self.deliver_no_ack:
            traffic.delivered[protocol, QOS0_QUEUE].add_increase(unacknowledged, self._drained_unacknowledged)
        self._drained_acknowledged, self._drained_unacknowledged = acknowledged, unacknowledged


class Metered(Protocol):
    """A connection with counters."""

    def count(self, tally: MeterCount) -> None:
        """Add the counts since the last call of ``settle`` to ``tally``."""
        ...

    def settle(self, tally: MeterCount) -> None:
        """Do the same; ``count`` and ``settle`` do not add these counts again."""
        ...


class Meter:
    """Owns the counters of a node's clients, including closed connections.

    ``sockets`` counts opened connections, ``connects`` the CONNECT packets received. ``_settled`` are the counts of
    connections that have closed, or that rest; ``_awake`` are the others.
    """

    def __init__(self) -> None:
        self.sockets = 0
        self.connects = 0
        self._awake: dict[Metered, None] = {}
        self._settled = MeterCount()

    def register(self, connection: Metered) -> None:
        """Register a new connection."""
        self.sockets += 1
        self._awake[connection] = None

    def unregister(self, connection: Metered) -> None:
        """Keep the counts of a connection that closes. Safe to call twice."""
        self.rests(connection)

    def rests(self, connection: Metered) -> None:
        """Add up the counts of a connection that neither receives nor sends until ``wakes``."""
        if connection in self._awake:
            del self._awake[connection]
            connection.settle(self._settled)

    def wakes(self, connection: Metered) -> None:
        """Count a connection that rested again in each sum."""
        self._awake[connection] = None

    def total(self) -> MeterCount:
        """Return the sum of all connections, open and closed."""
        total = self._settled.copied()
        for connection in self._awake:
            connection.count(total)
        return total
