"""Rows of the sink as messages: frames of a head in JSON and a body.

A frame is two lengths of four bytes, big-endian, then the head, then the body. The head is an object with
``exchange``, ``routing_key``, ``properties`` as the API takes them, and ``headers`` or ``headers_json``; what is absent
is as the batch says. A head of length 0 is that of the row before; in the first row of a part it is there.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, NamedTuple

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Header, Properties, Value
from gateway.kernel.messages.native_header import plain_header
from gateway.kernel.messages.values import loads
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.message_checks import require_deliverable
from gateway.management.messages import properties_of

_LENGTHS: Final = Struct(">II")

#: What a row's messages survive unless it says otherwise: the sink is for what must not be lost.
_PERSISTENT: Final = 2

_MAX_HEADS: Final = 10_000

#: What the API says of a property, as RabbitMQ does, in words.
_REASON_TEXTS: Final = {
    "not_int": "no whole number",
    "not_string": "no text",
    "not_object": "no object",
    "out_of_range": "out of range",
}


class RowDestination(NamedTuple):
    """Where a message goes."""

    exchange: str
    routing_key: str


class Row(NamedTuple):
    """One message to publish."""

    address: RowDestination
    header: Header
    body: bytes


@dataclass(frozen=True, slots=True)
class RowDefaults:
    """Where rows go that do not say so; ``None`` for an exchange that has to be said."""

    exchange: str | None
    routing_key: str


class RowReader:
    """Reads rows, remembering heads: most rows say what another said."""

    def __init__(self, defaults: RowDefaults) -> None:
        self._defaults = defaults
        self._cache: dict[bytes, tuple[RowDestination, Header]] = {}

    def rows(self, part: bytes) -> Iterator[Row]:
        """Yield the rows of a part. :raises HttpError: when it is torn, or a row makes no sense."""
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
            if len(self._cache) >= _MAX_HEADS:
                self._cache.clear()
            parsed = self._cache[head] = self._read(head)
        return parsed

    def _read(self, head: bytes) -> tuple[RowDestination, Header]:
        try:
            fields = json.loads(head)
            exchange = fields.get("exchange", self._defaults.exchange)
            routing_key = fields.get("routing_key", self._defaults.routing_key)
            properties = _properties(fields)
            if not isinstance(exchange, str) or not isinstance(routing_key, str):
                raise bad_request("a row names no exchange, and the batch has none for it")
            require_deliverable(routing_key, properties)
        except (ValueError, TypeError, AttributeError, RecursionError, PreconditionFailed) as error:
            raise bad_request(f"a row cannot be published: {error}") from None
        return RowDestination(exchange, routing_key), plain_header(properties)


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
    """Return the headers of a row: those with all their types where there are such, else those of text."""
    written = fields.get("headers_json")
    if written is not None:
        try:
            return loads(str(written).encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise ValueError(f"headers_json: {error}") from None
    headers = fields.get("headers", {})
    if not isinstance(headers, dict):
        raise TypeError("headers are no object")
    return headers
