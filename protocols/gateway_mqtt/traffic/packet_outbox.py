"""An outbox that counts packets. Deliveries bypass ``write`` and are counted by their sender."""

from collections.abc import Sequence

from gateway.net.outbox import Outbox
from gateway.net.turn import TurnParticipant


class PacketOutbox(Outbox):
    """The outbox of a connection. ``packets`` counts the packets written, without deliveries."""

    __slots__ = ("packets",)

    def __init__(self, participant: TurnParticipant) -> None:
        super().__init__(participant)
        self.packets = 0

    def write(self, frame: bytes) -> None:
        """Append one packet. Inlined, because ``super().write`` takes 132 ns instead of 79."""
        self.packets += 1
        self.pieces.append(frame)
        self.size += len(frame)
        self.wake()

    def write_all(self, packets: Sequence[bytes]) -> None:
        """Append several packets as one piece."""
        self.packets += len(packets) - 1
        self.write(b"".join(packets))
