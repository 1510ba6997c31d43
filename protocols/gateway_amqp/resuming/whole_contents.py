"""The end of a content that is whole in one read, as most are: found without a look at each of its frames."""

from collections.abc import Callable
from struct import Struct
from typing import Final

from gateway_amqp.content import BASIC, BODY, FRAME_END, HEADER, read_frame_head

_BASIC_WITHOUT_WEIGHT: Final = BASIC << 16

#: type, channel, payload size, class with weight, body size
_header_head: Final[Callable[[bytes, int], tuple[int, int, int, int, int]]] = Struct(">BHIIQ").unpack_from


def content_end(data: bytes, position: int, channel: int) -> int:
    """Return the end of the content at ``position`` if it is whole and has one body frame at most; 0 otherwise."""
    end = len(data)
    if end - position < 22:
        return 0
    kind, number, size, class_and_weight, body_size = _header_head(data, position)
    stop = position + 8 + size
    if kind != HEADER or number != channel or class_and_weight != _BASIC_WITHOUT_WEIGHT or size < 14:
        return 0
    if stop > end or data[stop - 1] != FRAME_END:
        return 0
    if not body_size:
        return stop
    if end - stop < 8:
        return 0
    kind, number, size = read_frame_head(data, stop)
    last = stop + 8 + size
    if size != body_size or kind != BODY or number != channel or last > end or data[last - 1] != FRAME_END:
        return 0
    return last
