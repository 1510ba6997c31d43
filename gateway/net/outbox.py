"""Frames or packets on their way to one peer: collected during a turn, taken as one at its end."""

from typing import Final

from gateway.kernel.queueing.consumer import Outlet
from gateway.net.turn import Speaker

#: Bytes that may wait for a peer before its consumers are passed over. Larger than one read brings in, so that a
#: consumer as fast as the publisher never notices; small enough that a slow one holds little memory.
HIGH_WATER: Final = 512 * 1024

#: Bytes that may wait before the peer is not read from any more: answers, returns and gets come by asking alone.
FLOOD: Final = 16 * 1024 * 1024


class Outbox(Outlet):
    """Owns the pieces to send, each a whole number of frames or part of one written at once.

    ``wake`` asks the ``speaker`` to flush it at the end of this turn. The hot path adds to ``pieces`` and ``size``
    itself. ``size`` is about the bytes that wait; ``is_open`` says whether deliveries may go in. While ``is_full`` none
    may, because the peer has settled too few of them.
    """

    __slots__ = ("_promises", "_speaker", "is_awake", "is_congested", "is_full", "pieces", "size")

    def __init__(self, speaker: Speaker) -> None:
        super().__init__()
        self._speaker = speaker
        self._promises: list[tuple[int, int]] = []
        self.pieces: list[bytes] = []
        self.size = 0
        self.is_congested = False
        self.is_awake = False
        self.is_full = False

    def write(self, frame: bytes) -> None:
        """Add one frame."""
        self.pieces.append(frame)
        self.size += len(frame)
        self.wake()

    def promise(self, lsn: int, since: int | None = None) -> None:
        """Let what is written from now on leave only once the store is durable up to ``lsn``.

        An answer that promises durability goes out when the promise holds, and the order of frames is kept with it.
        ``since`` makes it hold for what was written already, from that piece on.
        """
        if since is not None:
            while self._promises and self._promises[-1][1] >= since and self._promises[-1][0] <= lsn:
                self._promises.pop()
        if not self._promises or lsn > self._promises[-1][0]:
            self._promises.append((lsn, len(self.pieces) if since is None else since))

    def wake(self) -> None:
        """Make sure that the outbox is taken from at the end of this turn."""
        if not self.is_awake:
            self.is_awake = True
            self._speaker.wake()

    def fill(self, is_full: bool) -> None:
        """Let no more deliveries in, or let them in again from the end of this turn on."""
        self.is_full = is_full
        self.is_open = self.is_open and not is_full
        self.wake()

    def defer_confirms(self) -> None:
        """Make sure that the speaker is asked for confirms at the end of this turn, before the outbox is taken from."""
        self._speaker.defer_confirms()
        self.wake()

    def take(self, watermark: int) -> tuple[list[bytes], int]:
        """Return what may leave when the store is durable up to ``watermark``, and about how many bytes it is."""
        if self._promises:
            self._promises = [promise for promise in self._promises if promise[0] > watermark]
        pieces, size = self.pieces, self.size
        if not self._promises:
            self.pieces = []
            self.size = 0
            return pieces, size
        count = self._promises[0][1]
        pieces, self.pieces = self.pieces[:count], self.pieces[count:]
        self._promises = [(lsn, index - count) for lsn, index in self._promises]
        self.size = sum(map(len, self.pieces))
        return pieces, size - self.size

    @property
    def awaited(self) -> int:
        """The log position that what waits is waiting for; 0 when it waits for nothing."""
        return self._promises[0][0] if self._promises else 0

    def weigh(self) -> bool:
        """Decide anew whether deliveries may go in; return whether they may again after they might not."""
        was_open = self.is_open
        self.is_open = not (self.is_congested or self.is_full) and self.size < HIGH_WATER
        return self.is_open and not was_open
