"""One direction of a connection: bytes arrive in order, later, and cut anywhere."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from gateway.simulation.world.world import World

#: Bytes that one read of the receiver takes at most.
_READ_SIZE: Final = 65_536


#: Pieces of this many bytes or fewer have no longer delay than that, in seconds.
_SMALL: Final = 20
_SHORT_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class LinkQuality:
    """The character of a connection: the delay of each piece in seconds, and how the bytes are cut."""

    least_delay_s: float
    most_delay_s: float
    largest_piece: int

    @classmethod
    def chosen(cls, random: Random) -> "LinkQuality":
        """Choose the character of a connection."""
        most_delay_s = random.choice((0.0, 0.0005, 0.002, 0.05))
        largest_piece = random.choice((1, 3, 20, 300, _READ_SIZE, _READ_SIZE))
        if largest_piece <= _SMALL:  # byte by byte, a long answer would take minutes
            most_delay_s = min(most_delay_s, _SHORT_S)
        return cls(0.0, most_delay_s, largest_piece)


#: The character of a connection that neither delays nor cuts.
WHOLE: Final = LinkQuality(0.0, 0.0, _READ_SIZE)


class Pipe:
    """Carries bytes to ``receive``; ``end`` is called after the last byte once the pipe was closed.

    While ``is_paused`` nothing arrives. ``on_drained`` is called each time all bytes have arrived.
    """

    def __init__(
        self, world: World, link: LinkQuality, receive: Callable[[bytes], None], end: Callable[[], None]
    ) -> None:
        self.is_paused = False
        self.on_drained: Callable[[], None] = lambda: None
        self._world = world
        self._random = world.random
        self._least_s, self._spread_s = link.least_delay_s, link.most_delay_s - link.least_delay_s
        self._largest_piece = link.largest_piece
        self._receive = receive
        self._end = end
        self._bytes = bytearray()
        self._is_closed = self._is_broken = False
        self._is_arriving = False

    def __len__(self) -> int:
        """The number of bytes under way."""
        return len(self._bytes)

    def send(self, data: bytes) -> None:
        """Send bytes."""
        if not (self._is_closed or self._is_broken):
            self._bytes += data
            self._go_on()

    def close(self) -> None:
        """Send the end."""
        self._is_closed = True
        self._go_on()

    def break_off(self) -> None:
        """Drop everything under way; nothing arrives any more."""
        self._is_broken = True
        self._bytes.clear()

    def pause(self, is_paused: bool) -> None:
        """Stop the arrival of bytes, or resume it."""
        self.is_paused = is_paused
        self._go_on()

    def _go_on(self) -> None:
        if not (self._is_arriving or self.is_paused or self._is_broken) and (self._bytes or self._is_closed):
            self._is_arriving = True
            self._world.call_later(self._least_s + self._spread_s * self._random.random(), self._arrive)

    def _arrive(self) -> None:
        self._is_arriving = False
        if self.is_paused or self._is_broken:
            return
        data = self._bytes
        if not data:
            self._is_broken = True
            self._end()
            return
        size, most = len(data), self._largest_piece
        if size > most:
            size = most
        if size > 1 and most < _READ_SIZE:
            bits = size.bit_length()
            while (last := self._random.getrandbits(bits)) >= size:  # as in randrange, which takes several calls
                pass
            size = last + 1
        piece = bytes(data[:size])
        del data[:size]
        self._receive(piece)
        if data:
            if not (self._is_arriving or self.is_paused or self._is_broken):  # as in _go_on, without another call
                self._is_arriving = True
                self._world.call_later(self._least_s + self._spread_s * self._random.random(), self._arrive)
            return
        self.on_drained()
        self._go_on()
