"""From bytes to frames, however the bytes were cut.

A head that was seen before is known by its bytes and not read again: nearly all SENDs of a client have the same one.
What is not whole yet is kept in pieces and joined once it may be, so that a large body is not copied with every read.
"""

import re
from collections.abc import Iterator
from typing import Final

from gateway_stomp.errors import StompError
from gateway_stomp.frames import NEVER_REPEATED, Head
from gateway_stomp.versions import Version

#: What may stand between frames: ends of lines, which are heart-beats, and, as with RabbitMQ, more NULs.
_BETWEEN: Final = frozenset(b"\n\r\0")

_MOST_DIGITS: Final = 18
_LENGTH: Final = re.compile(rf" *([0-9]{{1,{_MOST_DIGITS}}}) *")

#: Heads kept per connection; when there are more, all are forgotten.
_HEADS_KEPT: Final = 1024

#: Longer heads are not kept: what is long is seldom repeated.
_LONGEST_KEPT: Final = 512

#: Looked up once: the interpreter takes its time over a member of an enumeration.
_V10: Final = Version.V10


class FrameDecoder:
    """Owns the bytes of one client that no frame was made of yet.

    ``version`` says how headers are escaped. ``limit`` is the largest frame, ``headers_limit`` the largest head,
    ``line_limit`` the longest line of a head and ``body_limit`` the largest body, in bytes; ``count_limit`` is how many
    headers a frame may have. All may be changed between two frames.
    """

    __slots__ = (
        "_bound",
        "_heads",
        "_is_stopped",
        "_missing",
        "_pieces",
        "_size",
        "_sought",
        "body_limit",
        "count_limit",
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
        self._heads: dict[bytes, Head] = {}
        self._pieces: list[bytes] = []
        self._size = 0
        self._missing = 0
        self._bound = 0
        self._sought: tuple[bytes, ...] = ()
        self._is_stopped = False

    @property
    def kept(self) -> int:
        """How many bytes wait for the rest of their frame, or for ``go_on``."""
        return self._size

    def stop(self) -> None:
        """Make no more frames for now: what comes is kept."""
        self._is_stopped = True

    def go_on(self) -> None:
        """Make frames again; ``feed`` nothing to get those that were kept."""
        self._is_stopped = False
        self._missing, self._sought = 0, ()

    def feed(self, data: bytes) -> Iterator[tuple[Head, bytes]]:
        """Yield head and body of each frame that ``data`` completes.

        :raises StompError: when the bytes are no frame, or one that is too large.
        """
        if self._pieces:
            data = self._joined(data)
        at, end = 0, len(data)
        find = data.find
        while at < end and not self._is_stopped:
            if data[at] in _BETWEEN:
                at += 1
                continue
            stop = find(b"\n\n", at, at + self.headers_limit)
            head = self._heads.get(data[at:stop]) if stop > 0 else None
            if head is not None:
                body_at = stop + 2
            else:
                found = self._new_head(data, at, stop)
                if found is None:
                    self._keep(data, at, self.headers_limit, sought=(b"\n", b"\0"))
                    return
                head, body_at = found
            length = head.content_length
            if length >= 0:
                body_end = body_at + length
                if length > self.body_limit or body_end - at > self.limit:
                    raise self._too_large(body_end - at, length)
                if body_end >= end:
                    self._keep(data, at, 0, missing=body_end + 1 - end)
                    return
                if data[body_end]:
                    raise StompError("Invalid frame", f"No NUL follows the {length} bytes of the body")
            else:
                body_end = find(b"\0", body_at)
                if body_end < 0:
                    self._keep(data, at, self.limit, sought=(b"\0",))
                    return
                if body_end - body_at > self.body_limit or body_end - at > self.limit:
                    raise self._too_large(body_end - at, body_end - body_at)
            yield head, data[body_at:body_end]
            at = body_end + 1
        if at < end:
            self._keep(data, at, 0)

    # What is not whole yet

    def _joined(self, data: bytes) -> bytes:
        """Add to what waits; return all of it if it may hold a whole frame by now, and nothing otherwise."""
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
        """Keep what begins at ``at``.

        It is looked at again once ``missing`` more bytes came, and one of those ``sought`` among them or so many that
        they are more than ``bound``.
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
            return StompError("Frame too large", f"A body of {body} bytes, allowed are {self.body_limit}")
        return StompError("Frame too large", f"A frame of {size} bytes or more, allowed are {self.limit}")

    # Heads

    def _new_head(self, data: bytes, at: int, stop: int) -> tuple[Head, int] | None:
        """Read a head nobody saw before; return it and where the body begins, ``None`` when it is not whole.

        ``stop`` is where an empty line without a carriage return begins, -1 where there is none.
        """
        reach = at + self.headers_limit if stop < 0 else stop + 1
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
            if len(self._heads) >= _HEADS_KEPT:
                self._heads.clear()
            self._heads[block] = head
        return head, body_at

    def _read(self, block: bytes) -> Head:
        try:
            text = block.decode()
        except UnicodeDecodeError:
            raise StompError("Invalid frame", "The headers are not UTF-8") from None
        lines = (text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text).split("\n")
        verb = lines.pop(0)
        if len(lines) > self.count_limit:
            raise StompError("Invalid frame", f"{len(lines)} headers, allowed are {self.count_limit}")
        headers: dict[str, str] = {}
        longest = self.line_limit
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name:
                # not what it says: it may be a passcode
                raise StompError("Invalid frame", f"Line {lines.index(line) + 2} of the frame is not a header")
            if len(line) > longest:
                raise StompError("Invalid frame", f"A header of {len(line)} characters, allowed are {longest}")
            if name not in headers:
                headers[name] = value
        # before a version is agreed on, and in CONNECT at any time, nothing is escaped (1.2, "Value Encoding")
        version = _V10 if self.version is None or verb in ("CONNECT", "STOMP") else self.version
        if version is _V10:
            # 1.0 ends names with ": " in places, so spaces are dropped, as RabbitMQ does
            headers = {name: value.lstrip(" ") for name, value in headers.items()}
        elif "\\" in text:
            headers = _unescaped(lines, version)
        return Head(verb, headers, _content_length(headers.get("content-length")), len(block))


def _unescaped(lines: list[str], version: Version) -> dict[str, str]:
    """Return what header lines mean; two names may be the same only once their escapes are undone."""
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(version.unescape(name), version.unescape(value))
    return headers


def _content_length(written: str | None) -> int:
    """Return the length of the body, -1 where none is written."""
    if written is None:
        return -1
    if len(written) <= _MOST_DIGITS and written.isascii() and written.isdecimal():
        return int(written)
    number = _LENGTH.fullmatch(written)
    if number is None:
        raise StompError("Invalid frame", f"'{written[:80]}' is not a content-length")
    return int(number[1])
