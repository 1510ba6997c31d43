"""Content: the header and body frames after ``basic.publish``, complete in one read or in parts (4.2.6)."""

from collections.abc import Callable
from struct import Struct
from typing import Final

from gateway_amqp.errors import FrameError, octets, unexpected

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE
BASIC: Final = 60

#: type, channel, payload size
FRAME_HEAD: Final = Struct(">BHI")
#: the same, followed by class, weight and body size of a content header
HEADER_HEAD: Final = Struct(">BHIHHQ")
#: the same for reading, with class and weight as one number
_READ_HEADER_HEAD: Final = Struct(">BHIIQ")
_BASIC_WITHOUT_WEIGHT: Final = BASIC << 16
_CONTENT: Final = Struct(">HHQ")

#: Smaller parts of a body are copied together.
_SMALL_CHUNK: Final = 4096

#: Compiled code knows by these types that it calculates with numbers; with objects of any type it takes ten times as
#: long.
read_frame_head: Final[Callable[[bytes, int], tuple[int, int, int]]] = FRAME_HEAD.unpack_from
_header_head: Final[Callable[[bytes, int], tuple[int, int, int, int, int]]] = _READ_HEADER_HEAD.unpack_from


def whole_content(data: bytes, position: int, end: int, channel: int) -> tuple[bytes, bytes, int] | None:
    """Return (properties, body, next position) if a whole content is in ``data`` at ``position``, with one body frame
    at most.

    Return ``None`` for anything else: several body frames, a frame cut by the read, an unexpected frame. Those are
    handled frame by frame. Nearly all messages take the fast path here.
    """
    if end - position < 22:
        return None
    kind, number, size, class_and_weight, body_size = _header_head(data, position)
    stop = position + 7 + size
    if kind != HEADER or number != channel or class_and_weight != _BASIC_WITHOUT_WEIGHT or size < 14:
        return None
    if stop >= end or data[stop] != FRAME_END:
        return None
    properties = data[position + 19 : stop]
    if not body_size:
        return properties, b"", stop + 1
    position = stop + 1
    if end - position < 8:
        return None
    kind, number, size = read_frame_head(data, position)
    stop = position + 7 + size
    if size != body_size or kind != BODY or number != channel or stop >= end or data[stop] != FRAME_END:
        return None
    return properties, data[position + 7 : stop], stop + 1


class Assembly:
    """A content that is received frame by frame. Refuses unexpected frames, in RabbitMQ's words.

    ``body_size`` is the announced size, ``size`` the size received so far.
    """

    __slots__ = ("_chunks", "_missing", "body_size", "method", "properties", "size")

    def __init__(self, method: bytes) -> None:
        self.method = method
        self.properties: bytes | None = None
        self.body_size = 0
        self.size = 0
        self._missing = 0
        self._chunks: list[bytes | bytearray] = []

    @property
    def is_complete(self) -> bool:
        """Whether the announced size was received."""
        return self.properties is not None and not self._missing

    @property
    def body(self) -> bytes:
        """The body as one piece."""
        return b"".join(self._chunks)

    def add(self, kind: int, payload: bytes) -> None:
        """Add the next frame of the content. :raises FrameError: when it is not the expected one."""
        if self.properties is None:
            self._add_header(kind, payload)
        elif kind != BODY:
            raise unexpected("expected content body, got non content body frame instead", BASIC, 40)
        elif len(payload) > self._missing:
            raise FrameError(501, f"content body exceeds the {self.body_size} bytes announced", BASIC, 40)
        elif payload:
            self._add_chunk(payload)
            self.size += len(payload)
            self._missing -= len(payload)

    def _add_chunk(self, chunk: bytes) -> None:
        """Keep a part of the body. Small parts are joined: a million frames of one byte take a megabyte."""
        last = self._chunks[-1] if self._chunks else b""
        if isinstance(last, bytearray):
            last += chunk
        else:
            self._chunks.append(chunk if len(chunk) >= _SMALL_CHUNK else bytearray(chunk))

    def _add_header(self, kind: int, payload: bytes) -> None:
        if kind != HEADER:
            raise unexpected("expected content header for class 60, got non content header frame instead", BASIC, 40)
        if len(payload) < 14:
            raise FrameError(501, f"type {HEADER}, all octets = {octets(payload)}: unknown_frame")
        class_id, weight, self.body_size = _CONTENT.unpack_from(payload)
        if class_id != BASIC:
            raise unexpected(f"expected content header for class 60, got one for class {class_id} instead", BASIC, 40)
        if weight:
            raise unexpected("expected content header for class 60, got non content header frame instead", BASIC, 40)
        self._missing = self.body_size
        self.properties = payload[12:]
