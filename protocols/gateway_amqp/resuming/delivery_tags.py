"""The delivery tags of one channel, which go on rising for the client while each leader counts from one."""

from struct import Struct
from typing import Final

_TAG: Final = Struct(">Q")


class DeliveryTags:
    """``highest`` is the highest tag that the client got; ``offset`` what is added to the tags of this leader.

    What the client had from a former leader comes again, so its acknowledgements of it have no effect.
    """

    __slots__ = ("highest", "offset")

    def __init__(self) -> None:
        self.highest = 0
        self.offset = 0

    def begin_again(self) -> None:
        """Go on with another leader."""
        self.offset = self.highest

    def delivered(self, tag: int) -> None:
        """Note a delivery that the client got, by the tag of the leader."""
        self.highest = tag + self.offset

    def for_client(self, frame: bytes, position: int) -> bytes:
        """Return the frame of a delivery whose tag is at ``position``, with the client's tag."""
        (tag,) = _TAG.unpack_from(frame, position)
        return frame[:position] + _TAG.pack(tag + self.offset) + frame[position + 8 :]

    def for_leader(self, frame: bytes, position: int) -> bytes:
        """Return the frame of a settlement whose tag is at ``position``, with the leader's tag.

        It is empty if the client settles only what came from a former leader. Tag 0 means everything so far.
        """
        (tag,) = _TAG.unpack_from(frame, position)
        if tag == 0:
            return b"" if self.highest == self.offset else frame
        if tag <= self.offset:
            return b""
        return frame[:position] + _TAG.pack(tag - self.offset) + frame[position + 8 :]
