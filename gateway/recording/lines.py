"""The format of a recording: JSON, one object a line. docs/recording.md describes it."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from gateway.kernel.errors import ConfigurationError

#: The version of the format. A reader refuses others.
FORMAT: Final = 1

#: The longest line that is read, in bytes: a read of 64 KiB is less than 100 KiB here.
_LONGEST_LINE: Final = 16 * 2**20

#: The latest time of an event that is read, in seconds: a year.
_LONGEST_S: Final = 366 * 86_400


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """A line: something that happened to a connection ``at_s`` seconds after the recording began.

    ``kind`` is ``opened``, ``received``, ``sent``, ``closed`` or ``incomplete``. ``listener`` and ``peer`` are those of
    a connection that was opened; ``data`` is what the client sent, masked; ``answers`` and ``names`` outline what the
    broker sent. ``reason`` says who closed the connection (``client``, ``server``, ``broken``), or why the rest is
    missing.
    """

    at_s: float
    connection: int
    kind: str
    listener: str = ""
    peer: str = ""
    data: bytes = b""
    answers: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    reason: str = ""


def head_line(version: str, started_at: str, *, hides_bodies: bool) -> bytes:
    """Return the first line. ``started_at`` is the time in ISO 8601, ``version`` that of the broker."""
    bodies = "masked" if hides_bodies else "kept"
    return _line({"gateway_recording": FORMAT, "version": version, "started_at": started_at, "bodies": bodies})


def event_line(event: RecordedEvent) -> bytes:
    """Return the line of an event."""
    row: dict[str, Any] = {"at": round(event.at_s, 6), "connection": event.connection}
    if event.kind == "opened":
        row |= {"opened": event.listener, "peer": event.peer}
    elif event.kind == "received":
        row["received"] = b64encode(event.data).decode()
    elif event.kind == "sent":
        row["sent"] = event.answers
        if event.names:
            row["names"] = event.names
    else:
        row[event.kind] = event.reason
    return _line(row)


def read_recording(file: BinaryIO) -> Iterator[RecordedEvent]:
    """Yield the events of a recording. A last line that is cut is left out.

    :raises ConfigurationError: if it is no recording of this format; the error names the line.
    """
    head = _object(file.readline(_LONGEST_LINE), 1)
    if head is None or "gateway_recording" not in head:
        raise ConfigurationError("line 1: this is no recording: 'gateway_recording' is missing")
    if head["gateway_recording"] != FORMAT:
        raise ConfigurationError(f"line 1: the format is {head['gateway_recording']}, this version reads {FORMAT}")
    number = 1
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if not line.endswith(b"\n"):
            return  # the broker ended while it wrote
        row = _object(line, number)
        event = None if row is None else _event(row)
        if event is None or not 0 <= event.at_s <= _LONGEST_S:
            raise ConfigurationError(f"line {number}: not an event of a recording")
        yield event


def _event(row: dict[str, Any]) -> RecordedEvent | None:
    match row:
        case {"at": float() | int() as at_s, "connection": int() as connection, "opened": str() as listener}:
            return RecordedEvent(at_s, connection, "opened", listener, str(row.get("peer", "")))
        case {"at": float() | int() as at_s, "connection": int() as connection, "received": str() as text}:
            try:
                return RecordedEvent(at_s, connection, "received", data=b64decode(text, validate=True))
            except ValueError:
                return None
        case {"at": float() | int() as at_s, "connection": int() as connection, "sent": list() as answers}:
            names = row.get("names", [])
            if not isinstance(names, list) or not all(isinstance(each, str) for each in [*answers, *names]):
                return None
            return RecordedEvent(at_s, connection, "sent", answers=answers, names=names)
    for kind in ("closed", "incomplete"):
        match row:
            case {"at": float() | int() as at_s, "connection": int() as connection} if isinstance(row.get(kind), str):
                return RecordedEvent(at_s, connection, kind, reason=row[kind])
    return None


def _object(line: bytes, number: int) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise ConfigurationError(f"line {number}: not JSON") from None
    return row if isinstance(row, dict) else None


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"
