"""The state of an MQTT client that it keeps from one connection to the next (4.1)."""

from dataclasses import dataclass, field
from typing import Final

#: The highest packet identifier.
_LAST_ID: Final = 65_535


@dataclass(slots=True)
class OutgoingPublish:
    """A publish of QoS 1 or 2 without its last answer. ``is_received``: PUBREC came, PUBCOMP is awaited."""

    packet_id: int
    topic: str
    payload: bytes
    qos: int
    is_retained: bool
    content_type: str | None = None
    is_received: bool = False


@dataclass(slots=True)
class ClientSession:
    """Owns the unfinished handshakes of both directions. ``received`` has the payloads that wait for PUBREL."""

    outgoing: dict[int, OutgoingPublish] = field(default_factory=dict)
    received: dict[int, bytes] = field(default_factory=dict)
    last_id: int = 0

    def next_id(self) -> int:
        """Return a packet identifier that is not in use."""
        while True:
            self.last_id = self.last_id % _LAST_ID + 1
            if self.last_id not in self.outgoing:
                return self.last_id

    def clear(self) -> None:
        """Forget everything: the broker has no session."""
        self.outgoing.clear()
        self.received.clear()
