"""The headers of a message: a block of lines that begins with ``NATS/1.0`` and, of some messages, a status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway_jetstream.errors import NatsError, NatsProtocolError

_VERSION: Final = b"NATS/1.0"


@dataclass(frozen=True, slots=True)
class NatsHeaders:
    """The status (0 without one), its description, and the fields: of a repeated one, the first."""

    status: int = 0
    description: str = ""
    fields: dict[str, str] = field(default_factory=dict)


NONE: Final = NatsHeaders()


def decode_headers(block: bytes) -> NatsHeaders:
    """Return the headers in a block, :data:`NONE` for an empty one. :raises NatsProtocolError: if it is no block."""
    if not block:
        return NONE
    first, *lines = block.split(b"\r\n")
    if not first.startswith(_VERSION) or lines[-2:] != [b"", b""]:
        raise NatsProtocolError(f"the server sent headers that begin with {block[:40]!r}")
    status, description = _status(first[len(_VERSION) :])
    fields: dict[str, str] = {}
    for line in lines[:-2]:
        name, colon, value = line.partition(b":")
        if not colon or not name:
            raise NatsProtocolError(f"the server sent the header {line[:60]!r}")
        fields.setdefault(_text(name), _text(value).strip())
    return NatsHeaders(status, description, fields)


def encode_headers(fields: Mapping[str, str]) -> bytes:
    """Return the block of some fields. :raises NatsError: if one of them has a line end or no name."""
    lines = [_VERSION.decode()]
    for name, value in fields.items():
        if not name or ":" in name or _has_line_end(name) or _has_line_end(value):
            raise NatsError(f"the header {name!r} cannot be sent")
        lines.append(f"{name}: {value}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _has_line_end(text: str) -> bool:
    return "\r" in text or "\n" in text


def _status(rest: bytes) -> tuple[int, str]:
    """Return status and description of a first line: both may be missing."""
    number, _, description = rest.strip().partition(b" ")
    if not number:
        return 0, ""
    if not number.isdigit() or len(number) > 9:
        raise NatsProtocolError(f"the server sent the status {number[:40]!r}")
    return int(number), _text(description).strip()


def _text(part: bytes) -> str:
    return part.decode(errors="replace")
