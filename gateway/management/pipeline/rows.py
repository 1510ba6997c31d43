"""Conversion of the sink's rows to messages; each row is a frame of a JSON head and a body.

A frame is two lengths of four bytes, big-endian, then the head, then the body. The head is an object with
``exchange``, ``routing_key``, ``properties`` as in the API, and ``headers`` or ``headers_json``; missing keys have the
batch's defaults. A head of length 0 repeats that of the previous row; the first row of a part must have one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from gateway.kernel.caches import remember
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Header, Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.values import loads
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.message_checks import require_deliverable
from gateway.management.messages import properties_of

_LENGTHS: Final = Struct(">II")
_LENGTHS_SIZE: Final = 8
_lengths: Final = _LENGTHS.unpack_from

#: Default delivery mode: the sink's messages must not be lost.
_PERSISTENT: Final = 2

_MAX_HEADS: Final = 10_000

#: Rows, and bytes of bodies, of one run: at most a millisecond of publishing.
MOST_ROWS: Final = 128
MOST_BYTES: Final = 256 * 1024

#: Texts for RabbitMQ's error codes of properties.
_REASON_TEXTS: Final = {
    "not_int": "not a whole number",
    "not_string": "not a string",
    "not_object": "not an object",
    "out_of_range": "out of range",
}


class RowHead:
    """The destination, the properties and the headers of a message. Rows with the same head have the same object."""

    __slots__ = ("exchange", "header", "routing_key")

    def __init__(self, exchange: str, routing_key: str, header: Header) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.header = header


class RowRun:
    """Rows of a part that follow each other and have one head: at most ``MOST_ROWS``, and ``MOST_BYTES`` or one row.

    It knows where the bodies are: ``size`` is the sum of their sizes, ``largest`` the largest of them, in bytes.
    """

    __slots__ = ("_ends", "_first", "_part", "head", "largest", "size")

    def __init__(self, head: RowHead, part: bytes, first: int) -> None:
        self.head = head
        self.size = self.largest = 0
        self._part = part
        self._first = first
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, size: int, end: int) -> None:
        """Add a row, whose body of ``size`` bytes ends at ``end``; its head repeats that of the row before."""
        self._ends.append(end)
        self.size += size
        if size > self.largest:
            self.largest = size

    def messages(self) -> list[Message]:
        """Return the messages of the rows."""
        head, part, start = self.head, self._part, self._first
        exchange, routing_key, header = head.exchange, head.routing_key, head.header
        found = []
        for end in self._ends:
            found.append(Message(exchange, routing_key, header, part[start:end]))
            start = end + _LENGTHS_SIZE
        return found

    def first_message(self) -> Message:
        """Return the message of the first row."""
        head = self.head
        return Message(head.exchange, head.routing_key, head.header, self._part[self._first : self._ends[0]])


@dataclass(frozen=True, slots=True)
class RowDefaults:
    """Default destination of rows; ``None`` if each row must name its exchange."""

    exchange: str | None
    routing_key: str


class RowReader:
    """Parses rows, with a cache of heads: most heads are repeated."""

    def __init__(self, defaults: RowDefaults) -> None:
        self._defaults = defaults
        self._head_by_bytes: dict[bytes, RowHead] = {}

    def runs(self, part: bytes, skipped: int = 0) -> Iterator[RowRun]:
        """Yield the rows of a part after the first ``skipped``. :raises HttpError: if it is truncated or a row invalid.

        The runs before an invalid head are yielded first.
        """
        position, end = 0, len(part)
        head: RowHead | None = None
        run: RowRun | None = None
        while position < end:
            if position + _LENGTHS_SIZE > end:
                raise bad_request("a part ends in the middle of a row")
            head_size, body_size = _lengths(part, position)
            body = position + _LENGTHS_SIZE + head_size
            position = body + body_size
            if position > end:
                raise bad_request("a part ends in the middle of a row")
            if run is not None and (head_size or len(run) >= MOST_ROWS or run.size + body_size > MOST_BYTES):
                yield run
                run = None
            if head_size:
                head = self._head(part[body - head_size : body])
            if head is None:
                raise bad_request("the first row of a part has no head")
            if skipped:
                skipped -= 1
                continue
            if run is None:
                run = RowRun(head, part, body)
            run.add(body_size, position)
        if run is not None:
            yield run

    def _head(self, content: bytes) -> RowHead:
        head = self._head_by_bytes.get(content)
        if head is None:
            head = remember(self._head_by_bytes, content, self._read(content), _MAX_HEADS)
        return head

    def _read(self, head: bytes) -> RowHead:
        try:
            fields = json.loads(head)
            exchange = fields.get("exchange", self._defaults.exchange)
            routing_key = fields.get("routing_key", self._defaults.routing_key)
            properties = _properties(fields)
            if not isinstance(exchange, str) or not isinstance(routing_key, str):
                raise bad_request("neither the row nor the batch names an exchange")
            require_deliverable(routing_key, properties)
        except (ValueError, TypeError, AttributeError, RecursionError, PreconditionFailed) as error:
            raise bad_request(f"a row cannot be published: {error}") from None
        return RowHead(exchange, routing_key, native_header(properties))


def _properties(fields: dict[str, Any]) -> Properties:
    properties = {"delivery_mode": _PERSISTENT} | fields.get("properties", {}) | {"headers": _headers(fields)}
    try:
        return properties_of(properties)
    except HttpError as refusal:
        raise ValueError(_error_text(refusal.reason)) from None


def _error_text(reason: object) -> str:
    match reason:
        case [str(wrong), str(name)] if wrong in _REASON_TEXTS:
            return f"property '{name}' is {_REASON_TEXTS[wrong]}"
    return str(reason)


def _headers(fields: dict[str, Any]) -> dict[str, Value]:
    """Return the headers of a row: those of ``headers_json`` with their types, else those of text."""
    written = fields.get("headers_json")
    if written is not None:
        try:
            return loads(str(written).encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise ValueError(f"headers_json: {error}") from None
    headers = fields.get("headers", {})
    if not isinstance(headers, dict):
        raise TypeError("headers must be an object")
    return headers
