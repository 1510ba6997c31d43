"""Decodes bytes, cut anywhere, to frames.

Heads are cached by their bytes, because nearly all SENDs of a client have the same head; the next one is compared with
the last one before the cache is asked. An incomplete frame is kept in pieces and joined once it may be complete, so
that a large body is not copied with every read.
"""

import re
from collections.abc import Iterator
from typing import Final

from gateway.kernel.caches import remember
from gateway_stomp.errors import StompError
from gateway_stomp.frames import Head
from gateway_stomp.translate import NEVER_REPEATED
from gateway_stomp.versions import Version

#: Bytes allowed between frames: ends of lines, which are heart-beats, and, as with RabbitMQ, more NULs.
_BETWEEN: Final = frozenset(b"\n\r\0")

#: The first byte of a verb is larger than all of these.
_MOST_BETWEEN: Final = max(_BETWEEN)

_MOST_DIGITS: Final = 18
_LENGTH: Final = re.compile(rf" *([0-9]{{1,{_MOST_DIGITS}}}) *")

#: Heads cached per connection; when there are more, all are dropped.
_HEADS_KEPT: Final = 1024

#: Longer heads are not cached: long values seldom repeat.
_LONGEST_KEPT: Final = 512

#: The lengths of bodies seen before, and the most that are kept: sizes repeat more often than heads.
_length_by_text: Final[dict[str, int]] = {}
_LENGTHS_KEPT: Final = 1024

#: Lines of heads whose name and value are kept per connection, and the longest of them. Those of CONNECT are not kept:
#: one is the passcode.
_LINES_KEPT: Final = 64
_LONGEST_LINE_KEPT: Final = 128

#: Looked up once: access to an enumeration's member is slow.
_V10: Final = Version.V10


#: The head before the first frame.
_NO_HEAD: Final = Head("", {}, -1, 0)


class FrameDecoder:
    """Owns the received bytes of one client that do not make up a frame yet.

    After ``start`` each call of ``next`` decodes a frame to ``head`` and ``body``. This is a loop of the caller instead
    of a generator: a compiled generator keeps its variables in an object, and makes a tuple for each frame.

    ``version`` selects the escapes of headers. ``limit`` is the largest frame, ``headers_limit`` the largest head,
    ``line_limit`` the longest line of a head and ``body_limit`` the largest body, in bytes; ``count_limit`` is the most
    headers of a frame. All may be changed between two frames.
    """

    __slots__ = (
        "_at",
        "_bound",
        "_data",
        "_heads",
        "_is_stopped",
        "_last_block",
        "_last_head",
        "_missing",
        "_pairs",
        "_pieces",
        "_size",
        "_sought",
        "body",
        "body_limit",
        "count_limit",
        "head",
        "headers_limit",
        "limit",
        "line_limit",
        "version",
    )

    def __init__(self, limit: int, headers_limit: int, count_limit: int, line_limit: int, body_limit: int) -> None:
        self.version: Version | None = None
        self.limit = limit
        self.headers_limit = headers_limit
        self.count_limit = count_limit
        self.line_limit = line_limit
        self.body_limit = body_limit
        self.head = _NO_HEAD
        self.body = b""
        self._data = b""
        self._at = 0
        self._last_block = b"\0"  # no head has a NUL
        self._last_head = _NO_HEAD
        self._heads: dict[bytes, Head] = {}
        self._pairs: dict[str, tuple[str, str]] = {}
        self._pieces: list[bytes] = []
        self._size = 0
        self._missing = 0
        self._bound = 0
        self._sought: tuple[bytes, ...] = ()
        self._is_stopped = False

    @property
    def kept(self) -> int:
        """The number of bytes that wait for the rest of their frame, or for ``go_on``."""
        return self._size

    @property
    def awaited(self) -> int:
        """The size of the frame of which a part was received, at least; 0 without one."""
        return self._size + max(0, self._missing) if self._pieces else 0

    def stop(self) -> None:
        """Pause decoding; input is kept."""
        self._is_stopped = True

    def go_on(self) -> None:
        """Resume decoding; call ``feed`` without data for the frames that were kept."""
        self._is_stopped = False
        self._missing, self._sought = 0, ()

    def start(self, data: bytes) -> None:
        """Decode these bytes after those that were kept: call ``next`` until it returns false."""
        if self._pieces:
            data = self._joined(data)
        self._data, self._at = self._data[self._at :] + data, 0

    def next(self) -> bool:
        """Decode the next frame to ``head`` and ``body``; return whether there is one. The rest is kept.

        :raises StompError: when the bytes are not a valid frame, or the frame is too large.
        """
        data, at = self._data, self._at
        end = len(data)
        self._data, self._at = b"", 0
        while at < end and data[at] <= _MOST_BETWEEN and data[at] in _BETWEEN:
            at += 1
        if at == end:
            return False
        if self._is_stopped:
            self._keep(data, at, 0)
            return False
        body_at = at + len(self._last_block)
        if data[at:body_at] == self._last_block:
            head = self._last_head
        else:
            found = self._other_head(data, at)
            if found is None:
                self._keep(data, at, self.headers_limit, sought=(b"\n", b"\0"))
                return False
            head, body_at = found
        length = head.content_length
        if length >= 0:
            body_end = body_at + length
            if length > self.body_limit or body_end - at > self.limit:
                raise self._too_large(body_end - at, length)
            if body_end >= end:
                self._keep(data, at, 0, missing=body_end + 1 - end)
                return False
            if data[body_end]:
                raise StompError("Invalid frame", f"No NUL follows the {length} bytes of the body")
        else:
            body_end = data.find(b"\0", body_at)
            if body_end < 0:
                self._keep(data, at, self.limit, sought=(b"\0",))
                return False
            if body_end - body_at > self.body_limit or body_end - at > self.limit:
                raise self._too_large(body_end - at, body_end - body_at)
        self.head, self.body = head, data[body_at:body_end]
        self._data, self._at = data, body_end + 1
        return True

    def feed(self, data: bytes) -> Iterator[tuple[Head, bytes]]:
        """Yield head and body of each frame that ``data`` completes. :raises StompError: as ``next``."""
        self.start(data)
        while self.next():
            yield self.head, self.body

    # Incomplete frames

    def _joined(self, data: bytes) -> bytes:
        """Append to the kept bytes; return all of them if they may hold a whole frame now, otherwise nothing."""
        self._pieces.append(data)
        self._size += len(data)
        self._missing -= len(data)
        if self._is_stopped or self._missing > 0:
            return b""
        if self._sought and not any(octet in data for octet in self._sought) and self._size <= self._bound:
            return b""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return data

    def _keep(self, data: bytes, at: int, bound: int, *, missing: int = 0, sought: tuple[bytes, ...] = ()) -> None:
        """Keep the bytes from ``at`` on.

        They are checked again when ``missing`` more bytes were received and contain one of those ``sought``, or when
        there are more than ``bound``.
        """
        rest = data[at:]
        if sought and len(rest) > bound:
            raise self._too_large(len(rest))
        self._pieces.append(rest)
        self._size = len(rest)
        self._missing = missing
        self._sought = sought
        self._bound = bound

    def _too_large(self, size: int, body: int = 0) -> StompError:
        if body > self.body_limit:
            return StompError("Frame too large", f"A body of {body} bytes; the limit is {self.body_limit}")
        return StompError("Frame too large", f"A frame of {size} bytes or more; the limit is {self.limit}")

    # Heads

    def _other_head(self, data: bytes, at: int) -> tuple[Head, int] | None:
        """Return a head that is not the last one, and the position of the body; ``None`` when it is incomplete."""
        stop = data.find(b"\n\n", at, at + self.headers_limit)
        if stop <= 0:
            return self._new_head(data, at, stop)
        head = self._heads.get(data[at:stop])
        if head is None:
            return self._new_head(data, at, stop)
        self._last_block, self._last_head = data[at : stop + 2], head
        return head, stop + 2

    def _new_head(self, data: bytes, at: int, stop: int) -> tuple[Head, int] | None:
        """Decode a head that is not cached; return it and the position of the body, ``None`` when it is incomplete.

        ``stop`` is the position of an empty line without a carriage return, -1 if there is none.
        """
        reach = at + self.headers_limit if stop < 0 else stop + 1
        returning = -1
        if data.find(b"\r", at, reach) >= 0:  # looking for one byte is fast
            returning = data.find(b"\n\r\n", at, reach)
        if returning >= 0:
            stop, body_at = returning, returning + 3
        else:
            body_at = stop + 2
        block = data[at:stop] if stop >= 0 else data[at:reach]
        if 0 in block:
            raise StompError("Invalid frame", "A frame ends before its headers do")
        if stop < 0:
            if len(block) == self.headers_limit:
                raise StompError("Invalid frame", f"The headers take more than {self.headers_limit} bytes")
            return None
        head = self._read(block)
        if head.verb == "SEND" and len(block) <= _LONGEST_KEPT and NEVER_REPEATED.isdisjoint(head.headers):
            remember(self._heads, block, head, _HEADS_KEPT)
        return head, body_at

    def _read(self, block: bytes) -> Head:
        try:
            text = block.decode()
        except UnicodeDecodeError:
            raise StompError("Invalid frame", "The headers are not UTF-8") from None
        lines = (text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text).split("\n")
        verb = lines.pop(0)
        if len(lines) > self.count_limit:
            raise StompError("Invalid frame", f"{len(lines)} headers; the limit is {self.count_limit}")
        headers = self._split(lines, len(text))
        # before the version is negotiated, and in CONNECT, nothing is escaped (1.2, "Value Encoding")
        version = _V10 if self.version is None or verb in ("CONNECT", "STOMP") else self.version
        if version is _V10:
            # some 1.0 clients end names with ": ", so spaces are dropped, as in RabbitMQ
            headers = {name: value.lstrip(" ") for name, value in headers.items()}
        elif "\\" in text:
            headers = _unescaped(lines, version)
        return Head(verb, headers, _content_length(headers.get("content-length")), len(block))

    def _split(self, lines: list[str], size: int) -> dict[str, str]:
        """Return the headers in these lines, of ``size`` characters together; the first of repeated ones counts."""
        headers: dict[str, str] = {}
        for line in lines:
            pair = self._pairs.get(line)
            if pair is None:
                pair = self._new_pair(line, lines)
            headers[pair[0]] = pair[1]
        if len(headers) < len(lines) or size > self.line_limit:
            return self._split_unusual(lines)
        return headers

    def _new_pair(self, line: str, lines: list[str]) -> tuple[str, str]:
        """Return name and value of a header. Most of its other headers are in the next head too, so they are kept."""
        name, colon, value = line.partition(":")
        if not colon or not name:
            # the line itself is not shown: it may be a passcode
            raise StompError("Invalid frame", f"Line {lines.index(line) + 2} of the frame is not a header")
        pair = name, value
        if self.version is not None and name not in NEVER_REPEATED and len(line) <= _LONGEST_LINE_KEPT:
            remember(self._pairs, line, pair, _LINES_KEPT)
        return pair

    def _split_unusual(self, lines: list[str]) -> dict[str, str]:
        """Return the headers in lines of which some may be repeated or too long."""
        headers: dict[str, str] = {}
        for line in lines:
            if len(line) > self.line_limit:
                raise StompError("Invalid frame", f"A header of {len(line)} characters; the limit is {self.line_limit}")
            name, _, value = line.partition(":")
            headers.setdefault(name, value)
        return headers


def _unescaped(lines: list[str], version: Version) -> dict[str, str]:
    """Return the headers in these lines; duplicates are found after unescaping."""
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(version.unescape(name), version.unescape(value))
    return headers


def _content_length(written: str | None) -> int:
    """Return the length of the body, -1 if it is not given."""
    if written is None:
        return -1
    length = _length_by_text.get(written)
    if length is not None:
        return length
    if len(written) <= _MOST_DIGITS and written.isascii() and written.isdecimal():
        return remember(_length_by_text, written, int(written), _LENGTHS_KEPT)
    number = _LENGTH.fullmatch(written)
    if number is None:
        raise StompError("Invalid frame", f"'{written[:80]}' is not a content-length")
    return int(number[1])
