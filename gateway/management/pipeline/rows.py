"""Conversion of the sink's rows to messages; each row is a frame of a JSON head and a body.

A frame is two lengths of four bytes, big-endian, then the head, then the body. The head is an object with
``exchange``, ``routing_key``, ``properties`` as in the API, and ``headers`` or ``headers_json``; missing keys have the
batch's defaults. A head of length 0 repeats that of the previous row; the first row of a part must have one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, NamedTuple

from gateway.kernel.caches import remember
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Header, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.values import loads
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.message_checks import require_deliverable
from gateway.management.messages import properties_of

_LENGTHS: Final = Struct(">II")

#: Default delivery mode: the sink's messages must not be lost.
_PERSISTENT: Final = 2

_MAX_HEADS: Final = 10_000

#: Texts for RabbitMQ's error codes of properties.
_REASON_TEXTS: Final = {
    "not_int": "not a whole number",
    "not_string": "not a string",
    "not_object": "not an object",
    "out_of_range": "out of range",
}


class RowDestination(NamedTuple):
    """The destination of a message."""

    exchange: str
    routing_key: str


class Row(NamedTuple):
    """One message to publish."""

    address: RowDestination
    header: Header
    body: bytes


@dataclass(frozen=True, slots=True)
class RowDefaults:
    """Default destination of rows; ``None`` if each row must name its exchange."""

    exchange: str | None
    routing_key: str


class RowReader:
    """Parses rows, with a cache of heads: most heads are repeated."""

    def __init__(self, defaults: RowDefaults) -> None:
        self._defaults = defaults
        self._cache: dict[bytes, tuple[RowDestination, Header]] = {}

    def rows(self, part: bytes) -> Iterator[Row]:
        """Yield the rows of a part. :raises HttpError: if it is truncated or a row is invalid."""
        position, end = 0, len(part)
        parsed: tuple[RowDestination, Header] | None = None
        while position < end:
            if position + _LENGTHS.size > end:
                raise bad_request("a part ends in the middle of a row")
            head_size, body_size = _LENGTHS.unpack_from(part, position)
            body = position + _LENGTHS.size + head_size
            if body + body_size > end:
                raise bad_request("a part ends in the middle of a row")
            if head_size:
                parsed = self._parsed_head(part[body - head_size : body])
            if parsed is None:
                raise bad_request("the first row of a part has no head")
            position = body + body_size
            yield Row(*parsed, part[body:position])

    def _parsed_head(self, head: bytes) -> tuple[RowDestination, Header]:
        parsed = self._cache.get(head)
        if parsed is None:
            parsed = remember(self._cache, head, self._read(head), _MAX_HEADS)
        return parsed

    def _read(self, head: bytes) -> tuple[RowDestination, Header]:
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
        return RowDestination(exchange, routing_key), native_header(properties)


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
