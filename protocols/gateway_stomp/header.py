"""The header of a message that came by STOMP: the lines of the SEND that are about the message, as it wrote them.

What it looks like in the store: header lines as STOMP 1.2 escapes them, each with its newline, and behind a NUL, which
no line holds, the headers that the broker added since (:func:`gateway.kernel.values.dumps`).
"""

from collections.abc import Collection, Mapping
from typing import Final

from gateway.kernel.errors import ProtocolViolation
from gateway.kernel.message import Header, Properties, Value
from gateway.kernel.values import dumps, loads
from gateway_stomp.translate import (
    OF_FRAMES,
    expiration_ms_of,
    is_true,
    priority_of,
    properties_of,
    require_readable,
)
from gateway_stomp.versions import Version

MAX_SHARED: Final = 4096
"""Headers kept for sharing; when so many have gathered, all are forgotten."""

MAX_SHARED_BYTES: Final = 512
"""Longer headers are not kept: what is long is seldom repeated."""

_NUL: Final = b"\0"


class StompHeader(Header):
    """A header with what MESSAGE frames ask of it.

    ``lines`` are good for every version as they stand if ``is_plain``: nothing in them is escaped, nothing was added,
    and no reply-to has to be rewritten.
    """

    __slots__ = ("is_plain", "lines")

    def __init__(self, raw: bytes, headers: Mapping[str, str]) -> None:
        """Make a header of these bytes, whose lines say this. :raises PreconditionFailed: when a property is none."""
        require_readable(headers)
        super().__init__(
            STOMP,
            raw,
            is_persistent=is_true(headers.get("persistent")),
            priority=priority_of(headers) or 0,
            expiration_ms=expiration_ms_of(headers),
            user_id=headers.get("user-id"),
            is_ordinary="user-id" not in headers,
        )
        lines, _, added = raw.partition(_NUL)
        is_shown_as_sent = "reply-to" not in headers and headers.get("persistent", "true") == "true"
        self.lines = lines
        self.is_plain = is_shown_as_sent and not added and b"\\" not in lines


class StompHeaderFormat:
    """Headers as this module lays them out. Owns the shared ones."""

    name: str = "stomp"

    def __init__(self) -> None:
        self._shared: dict[bytes, StompHeader] = {}

    def header(self, raw: bytes) -> StompHeader:
        """Return the header of these bytes.

        :raises PreconditionFailed: for a priority, an expiration or another property that is none.
        """
        return self._shared.get(raw) or self._learn(raw, headers_in(raw.partition(_NUL)[0]))

    def properties(self, raw: bytes) -> Properties:
        """Translate everything. :raises PreconditionFailed: as ``header``."""
        lines, _, added = raw.partition(_NUL)
        return properties_of(headers_in(lines), _added(added))

    def edited(
        self, raw: bytes, headers: Mapping[str, Value], without: Collection[str], drops_expiration: bool
    ) -> bytes:
        """Return the bytes that say the same, but for these headers and the expiration."""
        lines, _, added = raw.partition(_NUL)
        replaced = {*without, *headers} | ({"expiration"} if drops_expiration else set())
        said = {name: value for name, value in headers_in(lines).items() if name not in replaced}
        kept = {name: value for name, value in _added(added).items() if name not in replaced}
        added_now = kept | dict(headers)
        return written(said) + (_NUL + dumps(added_now) if added_now else b"")

    def sent(self, headers: Mapping[str, str]) -> StompHeader:
        """Return the header of a SEND with these headers.

        :raises PreconditionFailed: for a property that is none, or that no AMQP client could read.
        """
        said = {name: value for name, value in headers.items() if name not in OF_FRAMES}
        raw = written(said)
        return self._shared.get(raw) or self._learn(raw, said)

    def _learn(self, raw: bytes, headers: Mapping[str, str]) -> StompHeader:
        header = StompHeader(raw, headers)
        if len(raw) <= MAX_SHARED_BYTES:
            if len(self._shared) >= MAX_SHARED:
                self._shared.clear()
            self._shared[raw] = header
        return header


STOMP: Final = StompHeaderFormat()
"""The one format object of the process: every STOMP header is shared through it."""


def written(headers: Mapping[str, str]) -> bytes:
    """Return header lines, each with its newline."""
    text = "".join([f"{name}:{value}\n" for name, value in headers.items()])
    if "\\" not in text and "\r" not in text and text.count(":") == text.count("\n") == len(headers):
        return text.encode()  # nothing to escape, as nearly always
    escape = Version.V12.escape
    return "".join([f"{escape(name)}:{escape(value)}\n" for name, value in headers.items()]).encode()


def headers_in(lines: bytes) -> dict[str, str]:
    """Return what header lines say."""
    unescape = Version.V12.unescape
    pairs = (line.partition(":") for line in lines.decode().split("\n")[:-1])
    return {unescape(name): unescape(value) for name, _, value in pairs}


def _added(encoded: bytes) -> dict[str, Value]:
    try:
        return loads(encoded) if encoded else {}
    except ValueError as flaw:
        raise ProtocolViolation(f"the headers added to a message: {flaw}") from None
