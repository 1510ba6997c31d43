"""Output to one peer: frames or packets are collected during a turn and taken together at its end."""

from typing import Final

from gateway.kernel.queueing.consumer import Outlet
from gateway.net.turn import TurnParticipant

#: Bytes that may wait for a peer before its consumers are skipped. Larger than one read, so that a consumer as fast as
#: the publisher is never skipped; small enough that a slow one holds little memory.
HIGH_WATER: Final = 512 * 1024

#: Bytes that may wait before reading from the peer stops: answers, returns and gets follow only from its requests.
FLOOD: Final = 16 * 1024 * 1024

#: The promises of an outbox without any: empty, and never written to.
_NO_PROMISES: Final[list[tuple[int, int]]] = []


class Outbox(Outlet):
    """Owns the pieces to send; each piece is a whole number of frames, or part of a frame written in one go.

    ``wake`` schedules a flush by the ``participant`` at the end of this turn. Deliveries are added to ``pieces``, then
    counted by ``delivered``. ``size`` is the approximate number of waiting bytes. ``is_open``: deliveries may be added.
    ``is_full``: no deliveries may be added, because the peer has too many unsettled ones.
    """

    __slots__ = ("_participant", "_promises", "is_awake", "is_congested", "is_full", "pieces", "size")

    def __init__(self, participant: TurnParticipant) -> None:
        super().__init__()
        self._participant = participant
        self._promises = _NO_PROMISES
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

    def delivered(self, size: int) -> None:
        """Count ``size`` bytes of deliveries that were added to ``pieces``; allow no more of them when it is full."""
        self.size += size
        if self.size > HIGH_WATER:
            self.is_open = False
        if not self.is_awake:
            self.wake()

    def promise(self, lsn: int, since: int | None = None) -> None:
        """Hold later output until the store is durable up to ``lsn``.

        An answer that promises durability is sent when the promise holds; the order of frames is kept. ``since``
        includes pieces that were written already, from that index on.
        """
        if since is not None:
            while self._promises and self._promises[-1][1] >= since and self._promises[-1][0] <= lsn:
                self._promises.pop()
        if not self._promises:
            self._promises = [(lsn, len(self.pieces) if since is None else since)]
        elif lsn > self._promises[-1][0]:
            self._promises.append((lsn, len(self.pieces) if since is None else since))

    def wake(self) -> None:
        """Schedule a flush at the end of this turn."""
        if not self.is_awake:
            self.is_awake = True
            self._participant.wake()

    def pause(self) -> None:
        """Stop deliveries until the flush at the end of this turn."""
        self.is_open = False
        self.wake()

    def fill(self, is_full: bool) -> None:
        """Stop deliveries, or allow them again from the end of this turn on."""
        self.is_full = is_full
        self.is_open = self.is_open and not is_full
        self.wake()

    def take(self, watermark: int) -> tuple[list[bytes], int]:
        """Return the pieces that may be sent when the store is durable up to ``watermark``, and their approximate size
        in bytes.
        """
        if self._promises:
            self._promises = [promise for promise in self._promises if promise[0] > watermark]
        pieces, size = self.pieces, self.size
        if not self._promises:
            self._promises = _NO_PROMISES
            self.pieces = []
            self.size = 0
            return pieces, size
        count = self._promises[0][1]
        pieces, self.pieces = self.pieces[:count], self.pieces[count:]
        self._promises = [(lsn, index - count) for lsn, index in self._promises]
        self.size = sum(map(len, self.pieces))
        return pieces, size - self.size

    @property
    def awaited_lsn(self) -> int:
        """Return the log position that the next piece waits for; 0 if it waits for none."""
        return self._promises[0][0] if self._promises else 0

    def update_is_open(self) -> bool:
        """Decide again whether deliveries may be added; return whether they may now but could not before."""
        was_open = self.is_open
        self.is_open = not (self.is_congested or self.is_full) and self.size < HIGH_WATER
        return self.is_open and not was_open
