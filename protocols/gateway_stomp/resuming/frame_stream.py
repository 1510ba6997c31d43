"""The bytes of one direction of a connection, cut into frames and what is between them (1.2, "STOMP Frames")."""

import re
from collections.abc import Iterator
from typing import Final

from gateway.net.forwarding.partial_unit import PartialUnit
from gateway_stomp.errors import StompError

#: The largest frame that is kept until it is whole, in bytes. A larger one passes in pieces.
MOST_HELD_BACK: Final = 2 * 2**20

#: The largest head, in bytes: more than the broker takes.
_LARGEST_HEAD: Final = 256 * 1024

_BETWEEN: Final = re.compile(rb"[\n\r\0]*")
_HEAD_END: Final = re.compile(rb"\n\r?\n|\0")
_NUL: Final = re.compile(rb"\0")
_LENGTH: Final = re.compile(rb"\ncontent-length: *([0-9]{1,18}) *\r?\n")


class FrameStream:
    """Owns the bytes of a frame that is not whole yet.

    ``is_cut``: a part of a large frame has passed, and the rest has not come. ``limit`` is the largest frame, in bytes,
    0 for none; it may be changed between two frames.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._partial = PartialUnit()

    @property
    def is_cut(self) -> bool:
        """See the class."""
        return self._partial.is_cut

    @property
    def kept(self) -> int:
        """The number of bytes that wait for the rest of their frame."""
        return self._partial.size

    def cut(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield frames with the size of their heads, and other bytes, where it is 0: ends of lines between frames, and
        pieces of a large frame after its first one.

        :raises StompError: if they are no frames; ``take`` returns the bytes from there on.
        """
        if piece := self._partial.piece(data):
            yield 0, piece
        whole = self._partial.add(data[len(piece) :])
        if whole is None:
            return
        at, end = 0, len(whole)
        while at < end:
            start = _between(whole, at)
            if start > at:
                yield 0, whole[at:start]
                at = start
                continue
            head_end = _HEAD_END.search(whole, at, at + self._most(_LARGEST_HEAD))
            stop = -1 if head_end is None else _end_of_frame(whole, at, head_end)
            if head_end is None or stop < 0:
                self._seek_end(whole[at:], is_in_head=head_end is None)
                return
            if self.limit and stop - at > self.limit:
                self._partial.keep(whole[at:])
                raise StompError("Invalid frame", f"The frame is larger than {self.limit} bytes")
            if stop > end:
                if stop - at <= MOST_HELD_BACK:
                    self._partial.keep(whole[at:], stop - end)
                    return
                self._partial.pass_in_pieces(stop - end)
            yield head_end.end() - at, whole[at:stop]
            at = stop

    def _most(self, limit: int) -> int:
        return min(limit, self.limit) if self.limit else limit

    def _seek_end(self, rest: bytes, *, is_in_head: bool) -> None:
        """Keep a frame until the end of its head, or of its body, has come. :raises StompError: if it is too large."""
        end, most = (_HEAD_END, _LARGEST_HEAD) if is_in_head else (_NUL, MOST_HELD_BACK)
        most = self._most(most)
        sought = max(0, len(rest) - 2) if is_in_head else len(rest)
        self._partial.keep_until(end, rest, sought, most)
        if len(rest) > most:
            raise StompError("Invalid frame", "A frame has no end")

    def take(self) -> bytes:
        """Return what is kept, and keep nothing more."""
        return self._partial.take()


def _between(data: bytes, at: int) -> int:
    found = _BETWEEN.match(data, at)
    return at if found is None else found.end()


def _end_of_frame(data: bytes, at: int, head_end: re.Match[bytes]) -> int:
    """Return the position after a frame, which may be beyond the data; -1 if it is not known."""
    if head_end[0] == b"\0":  # a frame without an empty line: the other side refuses it
        return head_end.end()
    length = _LENGTH.search(data, at, head_end.end())
    if length is not None:
        return head_end.end() + int(length[1]) + 1
    return data.find(b"\0", head_end.end()) + 1 or -1
