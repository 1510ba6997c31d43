"""What the MQTT clients of a node sent and received, all of them together: numbers that only grow.

Each connection counts for itself, in places where it costs next to nothing. Nobody adds the counts up but who asks, so
that no client pays for the others.
"""

from typing import Final, Protocol

#: What is counted. Packets are of all kinds, payloads are those of PUBLISH, in bytes.
COUNTED: Final = (
    *("bytes_received", "bytes_sent", "packets_received", "packets_sent"),
    *("publishes_received", "publishes_sent", "payload_received", "payload_sent"),
)


class MeterCount:
    """A sum of counts. Whoever counted adds to it."""

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
        """Return one that says the same."""
        copy = MeterCount()
        for name in COUNTED:
            setattr(copy, name, getattr(self, name))
        return copy


class ClientCounters:
    """The messages that one client published and was delivered, and the bytes of their payloads."""

    __slots__ = ("deliver", "payload_received", "payload_sent", "publish")

    def __init__(self) -> None:
        self.publish = 0
        self.deliver = 0
        self.payload_received = 0
        self.payload_sent = 0


class Metered(Protocol):
    """A connection, as the meter sees it."""

    def count(self, tally: MeterCount) -> None:
        """Add what was counted since it began."""
        ...


class Meter:
    """Owns the counts of a node's clients, those that left included.

    ``sockets`` are the connections that were opened, ``connects`` the CONNECT packets that came.
    """

    def __init__(self) -> None:
        self.sockets = 0
        self.connects = 0
        self._present: dict[Metered, None] = {}
        self._departed = MeterCount()

    def enter(self, connection: Metered) -> None:
        """A connection was opened: count it, and what it will count."""
        self.sockets += 1
        self._present[connection] = None

    def leave(self, connection: Metered) -> None:
        """A connection ends: keep what it counted. Harmless twice."""
        if connection in self._present:
            del self._present[connection]
            connection.count(self._departed)

    def total(self) -> MeterCount:
        """Return what all of them counted."""
        total = self._departed.copied()
        for connection in self._present:
            connection.count(total)
        return total
