"""Header of messages published by STOMP: the lines of the SEND that concern the message, unchanged.

The stored form is: header lines with the escapes of STOMP 1.2, each with its newline; then a NUL, which no line
contains, and the headers that the broker added (:func:`gateway.kernel.messages.values.dumps`).
"""

from collections.abc import Mapping
from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.errors import ProtocolViolation
from gateway.kernel.messages.message import Header, HeaderEdit, Properties, Value
from gateway.kernel.messages.values import dumps, loads
from gateway_stomp.translate import (
    NEVER_REPEATED,
    OF_FRAMES,
    SURELY_SHORT,
    expiration_ms_of,
    is_true,
    priority_of,
    properties_of,
    require_short,
    require_time,
)
from gateway_stomp.versions import Version

MAX_SHARED: Final = 4096
"""Cached headers; when there are more, all are dropped."""

MAX_SHARED_BYTES: Final = 512
"""Longer headers are not cached: long values seldom repeat."""

_NUL: Final = b"\0"

#: A header with one of these is not cached.
_UNIQUE: Final = NEVER_REPEATED - OF_FRAMES

#: Headers that are not part of AMQP's text properties or its headers table.
_TELLING: Final = frozenset({"persistent", "priority", "expiration", "timestamp", "user-id", "reply-to"})


class StompHeader(Header):
    """A header with the data that MESSAGE frames need.

    ``is_plain``: the ``lines`` are valid in every version, because nothing is escaped or added, and there is no
    reply-to. ``is_unique``: hardly any other message has the same header.
    """

    __slots__ = ("is_plain", "is_unique", "lines")

    def __init__(self, raw: bytes, headers: Mapping[str, str]) -> None:
        """Create a header of these bytes and their decoded lines. :raises PreconditionFailed: when a property is
        invalid.
        """
        if len(raw) > SURELY_SHORT:
            require_short(headers)
        added_at = raw.find(_NUL)
        self.lines = raw if added_at < 0 else raw[:added_at]
        self.is_unique = not _UNIQUE.isdisjoint(headers)
        self.is_plain = added_at < 0 and b"\\" not in raw
        if _TELLING.isdisjoint(headers):
            super().__init__(STOMP, raw)
            return
        require_time(headers)
        super().__init__(
            STOMP,
            raw,
            is_persistent=is_true(headers.get("persistent")),
            priority=priority_of(headers) or 0,
            expiration_ms=expiration_ms_of(headers),
            user_id=headers.get("user-id"),
            is_ordinary="user-id" not in headers,
        )
        if "reply-to" in headers or headers.get("persistent", "true") != "true":
            self.is_plain = False


class StompHeaderFormat:
    """The codec of headers in this format. Owns the cached headers."""

    name: str = "stomp"

    def __init__(self) -> None:
        self._shared: dict[bytes, StompHeader] = {}

    def header(self, raw: bytes) -> StompHeader:
        """Return the header of these bytes.

        :raises PreconditionFailed: for an invalid priority, expiration or other property.
        """
        return self._shared.get(raw) or self._learn(raw, headers_in(raw.partition(_NUL)[0]))

    def properties(self, raw: bytes) -> Properties:
        """Translate all properties. :raises PreconditionFailed: as ``header``."""
        lines, _, added = raw.partition(_NUL)
        return properties_of(headers_in(lines), _added(added))

    def edited(self, raw: bytes, edit: HeaderEdit) -> bytes:
        """Return the bytes as edited."""
        lines, _, added = raw.partition(_NUL)
        replaced = {*edit.without, *edit.headers} | ({"expiration"} if edit.drops_expiration else set())
        unchanged = {name: value for name, value in headers_in(lines).items() if name not in replaced}
        kept = {name: value for name, value in _added(added).items() if name not in replaced}
        added_now = kept | dict(edit.headers)
        return written(unchanged) + (_NUL + dumps(added_now) if added_now else b"")

    def stamped(self, raw: bytes, timestamp_s: int) -> bytes:
        """Return the bytes with this header ``timestamp``."""
        lines, nul, added = raw.partition(_NUL)
        return written(headers_in(lines) | {"timestamp": str(timestamp_s)}) + nul + added

    def sent(self, headers: dict[str, str]) -> StompHeader:
        """Return the header of a SEND with these headers.

        :raises PreconditionFailed: for an invalid property, or one that AMQP cannot encode.
        """
        lines = [f"{name}:{value}\n" for name, value in headers.items() if name not in OF_FRAMES]
        if not lines:
            return self.header(b"")
        text = "".join(lines)
        if is_plain(text, len(lines)):
            raw = text.encode()
        else:
            raw = written({name: value for name, value in headers.items() if name not in OF_FRAMES})
        if _UNIQUE.isdisjoint(headers):
            return self._shared.get(raw) or self._learn(raw, headers)
        return StompHeader(raw, headers)

    def _learn(self, raw: bytes, headers: Mapping[str, str]) -> StompHeader:
        header = StompHeader(raw, headers)
        if len(raw) <= MAX_SHARED_BYTES:
            remember(self._shared, raw, header, MAX_SHARED)
        return header


STOMP: Final = StompHeaderFormat()
"""The one format object of the process: every STOMP header is cached in it."""


def is_plain(text: str, count: int) -> bool:
    """Return whether the lines of so many headers contain no escapes, which is the usual case."""
    return text.count(":") == count and text.count("\n") == count and "\\" not in text and "\r" not in text


def written(headers: Mapping[str, str]) -> bytes:
    """Encode header lines, each with its newline."""
    text = "".join([f"{name}:{value}\n" for name, value in headers.items()])
    if is_plain(text, len(headers)):
        return text.encode()
    escape = Version.V12.escape
    return "".join([f"{escape(name)}:{escape(value)}\n" for name, value in headers.items()]).encode()


def headers_in(lines: bytes) -> dict[str, str]:
    """Decode header lines. :raises ProtocolViolation: if they are not UTF-8, or have an undefined escape."""
    unescape = Version.V12.unescape
    try:
        text = lines.decode()
    except UnicodeDecodeError as flaw:
        raise ProtocolViolation(f"the stored header of a message is not UTF-8: {flaw}") from None
    pairs = (line.partition(":") for line in text.split("\n")[:-1])
    return {unescape(name): unescape(value) for name, _, value in pairs}


def _added(encoded: bytes) -> dict[str, Value]:
    try:
        return loads(encoded) if encoded else {}
    except ValueError as flaw:
        raise ProtocolViolation(f"the headers added to a message: {flaw}") from None
