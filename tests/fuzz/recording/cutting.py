"""Cuts recorded bytes into the frames of a protocol, and keeps one frame of each shape."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from tests.fuzz.decoders.corpus import TO_BROKER

Cut: TypeAlias = Callable[[bytes], Iterator[bytes]]
Shape: TypeAlias = Callable[[bytes], object]

#: The longest frame that is kept, in bytes.
_LONGEST: Final = 3_000

_GREETING: Final = b"AMQP"
_NUMBERS: Final = re.compile(rb"[0-9a-f]{6,}|[0-9]+")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_BODY: Final = re.compile(rb"\ncontent-length: *([0-9]+)")


def frames_in(protocol: str, conversation: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the frames of a conversation with their directions, each direction cut by itself."""
    cut, _ = PROTOCOLS[protocol]
    rest: dict[str, bytes] = {}
    for direction, piece in conversation:
        data = rest.pop(direction, b"") + piece
        for frame in cut(data):
            data = data[len(frame) :]
            yield direction, frame
        rest[direction] = data


def of_each_shape(protocol: str, frames: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the first frame of each shape."""
    _, shape = PROTOCOLS[protocol]
    seen = set()
    for direction, frame in frames:
        found = (direction, shape(frame))
        if found not in seen and len(frame) <= _LONGEST:
            seen.add(found)
            yield direction, frame


# ---- AMQP 0-9-1 -----------------------------------------------------------------------------------------------------


def _amqp(data: bytes) -> Iterator[bytes]:
    at = 0
    if data.startswith(_GREETING):
        if len(data) < 8:
            return
        yield data[:8]
        at = 8
    while len(data) - at >= 8:
        stop = at + 8 + int.from_bytes(data[at + 3 : at + 7])
        if stop > len(data):
            return
        yield data[at:stop]
        at = stop


def _amqp_shape(frame: bytes) -> object:
    """Type and, of a method, its numbers and the names in it; of a header, its flags and the names in it."""
    if frame.startswith(_GREETING) or frame[0] == 8:
        return frame[:1]
    if frame[0] == 3:
        return 3, len(frame) > 64
    numbers = frame[7:11] if frame[0] == 1 else frame[19:21]
    return frame[0], numbers, tuple(re.findall(rb"[a-z-]{4,}(?=[StIlFAdDTVx])", frame))


# ---- MQTT -----------------------------------------------------------------------------------------------------------


def _mqtt(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        length, shift, start = 0, 0, at + 1
        while start < len(data) and shift < 28:
            length |= (data[start] & 0x7F) << shift
            shift += 7
            start += 1
            if data[start - 1] < 0x80:
                break
        else:
            return
        if start + length > len(data):
            return
        yield data[at : start + length]
        at = start + length


def _mqtt_shape(frame: bytes) -> object:
    """First byte and size; of CONNECT its first fields."""
    return frame[0], len(frame) // 8, frame[:12] if frame[0] == 0x10 else b""


# ---- STOMP ----------------------------------------------------------------------------------------------------------


def _stomp(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        if data[at] in b"\r\n":
            yield data[at : at + 1]
            at += 1
            continue
        end = re.compile(rb"\r?\n\r?\n").search(data, at)
        if end is None:
            return
        announced = _BODY.search(data, at, end.start())
        stop = end.end() + int(announced[1]) if announced else data.find(b"\0", end.end())
        if stop < 0 or stop >= len(data):
            return
        yield data[at : stop + 1]
        at = stop + 1


def _stomp_shape(frame: bytes) -> object:
    """Verb and names of headers."""
    head = re.split(rb"\r?\n\r?\n", frame, maxsplit=1)[0]
    return tuple(sorted(line.partition(b":")[0] for line in head.splitlines()))


# ---- HTTP and WebSocket ---------------------------------------------------------------------------------------------


def _http(data: bytes) -> Iterator[bytes]:
    at = 0
    while (end := data.find(b"\r\n\r\n", at)) >= 0:
        announced = _LENGTH.search(data, at, end + 2)
        stop = end + 4 + (int(announced[1]) if announced else 0)
        if stop > len(data):
            return
        yield data[at:stop]
        at = stop


def _http_shape(frame: bytes) -> object:
    """First line, without numbers and digests."""
    return _NUMBERS.sub(b"0", frame.split(b"\r\n", 1)[0])


def whole(conversation: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield what the client sent as one frame: of WebSocket, the handshake and the frames behind it."""
    sent = b"".join(piece for direction, piece in conversation if direction == TO_BROKER)
    if 0 < len(sent) <= _LONGEST:
        yield TO_BROKER, sent


PROTOCOLS: Final[dict[str, tuple[Cut, Shape]]] = {
    "amqp": (_amqp, _amqp_shape),
    "mqtt": (_mqtt, _mqtt_shape),
    "stomp": (_stomp, _stomp_shape),
    "http": (_http, _http_shape),
}
