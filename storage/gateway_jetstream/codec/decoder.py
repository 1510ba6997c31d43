"""Decodes what a NATS server sends, however the bytes are cut."""

import json
from collections.abc import Callable, Iterator
from typing import Final

from gateway_jetstream.codec.frames import OKAY, PING, PONG, Delivered, ErrorText, Frame, Info
from gateway_jetstream.errors import NatsProtocolError

#: Limits in bytes: of a control line, of INFO (it lists all servers of a cluster), and of a message with its headers.
LINE_LIMIT: Final = 4096
INFO_LIMIT: Final = 64 * 1024
PAYLOAD_LIMIT: Final = 64 * 1024 * 1024


class NatsDecoder:
    """The frames in a stream of bytes. Owns the bytes of the frame that is not complete yet.

    After an error the decoder must not be used again.
    """

    def __init__(
        self, *, line_limit: int = LINE_LIMIT, info_limit: int = INFO_LIMIT, payload_limit: int = PAYLOAD_LIMIT
    ) -> None:
        self._line_limit = line_limit
        self._info_limit = info_limit
        self._payload_limit = payload_limit
        self._kept = bytearray()
        #: Where to look for the end of a line: what is before has none.
        self._searched = 0
        self._message: tuple[str, int, str, int, int] | None = None

    @property
    def kept(self) -> int:
        """The number of bytes that wait for the rest of their frame."""
        return len(self._kept)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that ``data`` completes. :raises NatsProtocolError: for bytes that are no frame."""
        kept = self._kept
        kept += data
        at = 0
        try:
            while True:
                if self._message is not None:
                    end = at + self._message[4]
                    if len(kept) < end + 2:
                        return
                    message, at = self._taken(at, end), end + 2
                    yield message
                    continue
                end = kept.find(b"\r\n", at + self._searched)
                self._require_short(kept, at, end)
                if end < 0:
                    self._searched = max(0, len(kept) - at - 1)
                    return
                line, at = bytes(kept[at:end]), end + 2
                self._searched = 0
                frame = self._frame_of(line)
                if frame is not None:
                    yield frame
        finally:
            del kept[:at]

    def _require_short(self, kept: bytearray, start: int, end: int) -> None:
        """Check the length of a line, or of its beginning."""
        is_info = kept[start : start + 4].upper() == b"INFO"
        limit = self._info_limit if is_info else self._line_limit
        if (end - start if end >= 0 else len(kept) - start - 1) > limit:
            raise NatsProtocolError(f"the server sent a line of more than {limit} bytes")

    def _frame_of(self, line: bytes) -> Frame | None:
        """Return the frame of a line, ``None`` for the head of a message."""
        verb, _, rest = line.replace(b"\t", b" ").partition(b" ")
        decode = _VERBS.get(verb.upper())
        if decode is None:
            raise NatsProtocolError(f"the server sent the unknown line {line[:60]!r}")
        found = decode(rest)
        if isinstance(found, tuple):
            if found[4] > self._payload_limit:
                raise NatsProtocolError(f"the server sent a message of {found[4]} bytes; at most {self._payload_limit}")
            self._message = found
            return None
        return found

    def _taken(self, start: int, end: int) -> Delivered:
        """Return the message whose bytes are complete."""
        assert self._message is not None
        subject, sid, reply, header_size, _ = self._message
        if self._kept[end : end + 2] != b"\r\n":
            raise NatsProtocolError("the server sent a message that is longer than it says")
        self._message = None
        with memoryview(self._kept) as view:
            header, payload = bytes(view[start : start + header_size]), bytes(view[start + header_size : end])
        return Delivered(subject, sid, reply, header, payload)


Head = tuple[str, int, str, int, int]
"""The head of a message: subject, subscription, reply, size of the headers, size of both."""


def _info(rest: bytes) -> Frame:
    try:
        fields = json.loads(rest)
    except (ValueError, RecursionError):
        raise NatsProtocolError("the server sent an INFO that is not JSON") from None
    if not isinstance(fields, dict):
        raise NatsProtocolError("the server sent an INFO that is not an object")
    return Info(fields)


def _error(rest: bytes) -> Frame:
    return ErrorText(rest.decode(errors="replace").strip().strip("'"))


def _message(rest: bytes) -> Head:
    parts = [part for part in rest.split(b" ") if part]
    if len(parts) not in (3, 4):
        raise NatsProtocolError(f"the server sent a MSG with {len(parts)} parts")
    return _text(parts[0]), _number(parts[1]), _text(parts[2]) if len(parts) == 4 else "", 0, _number(parts[-1])


def _message_with_header(rest: bytes) -> Head:
    parts = [part for part in rest.split(b" ") if part]
    if len(parts) not in (4, 5):
        raise NatsProtocolError(f"the server sent an HMSG with {len(parts)} parts")
    header_size, size = _number(parts[-2]), _number(parts[-1])
    if header_size > size:
        raise NatsProtocolError("the server sent an HMSG with more headers than bytes")
    return _text(parts[0]), _number(parts[1]), _text(parts[2]) if len(parts) == 5 else "", header_size, size


def _text(part: bytes) -> str:
    return part.decode(errors="replace")


def _number(part: bytes) -> int:
    if not part.isdigit() or len(part) > 18:
        raise NatsProtocolError(f"the server sent {part[:40]!r} instead of a number")
    return int(part)


_VERBS: Final[dict[bytes, Callable[[bytes], Frame | Head]]] = {
    b"INFO": _info,
    b"MSG": _message,
    b"HMSG": _message_with_header,
    b"PING": lambda rest: PING,
    b"PONG": lambda rest: PONG,
    b"+OK": lambda rest: OKAY,
    b"-ERR": _error,
}
