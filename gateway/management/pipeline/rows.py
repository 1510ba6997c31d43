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

from gateway.kernel.message import Header, Value
from gateway.kernel.plain import plain_header
from gateway.kernel.values import loads
from gateway.management.errors import bad_request
from gateway.management.messages import properties_of

_LENGTHS: Final = Struct(">II")

#: What a row's messages survive unless it says otherwise: the sink is for what must not be lost.
_PERSISTENT: Final = 2

_MOST_HEADS: Final = 10_000


class Address(NamedTuple):
    """Where a message goes."""

    exchange: str
    routing_key: str


class Row(NamedTuple):
    """One message to publish."""

    address: Address
    header: Header
    body: bytes


@dataclass(frozen=True, slots=True)
class Defaults:
    """Where rows go that do not say so; ``None`` for an exchange that has to be said."""

    exchange: str | None
    routing_key: str


class RowReader:
    """Reads rows, remembering heads: most rows say what another said."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._known: dict[bytes, tuple[Address, Header]] = {}

    def rows(self, part: bytes) -> Iterator[Row]:
        """Yield the rows of a part. :raises HttpError: when it is torn, or a row makes no sense."""
        position, end = 0, len(part)
        said: tuple[Address, Header] | None = None
        while position < end:
            if position + _LENGTHS.size > end:
                raise bad_request("a part ends in the middle of a row")
            head_size, body_size = _LENGTHS.unpack_from(part, position)
            body = position + _LENGTHS.size + head_size
            if body + body_size > end:
                raise bad_request("a part ends in the middle of a row")
            if head_size:
                said = self._said(part[body - head_size : body])
            if said is None:
                raise bad_request("the first row of a part has no head")
            position = body + body_size
            yield Row(*said, part[body:position])

    def _said(self, head: bytes) -> tuple[Address, Header]:
        known = self._known.get(head)
        if known is None:
            if len(self._known) >= _MOST_HEADS:
                self._known.clear()
            known = self._known[head] = self._read(head)
        return known

    def _read(self, head: bytes) -> tuple[Address, Header]:
        try:
            fields = json.loads(head)
            exchange = fields.get("exchange", self._defaults.exchange)
            routing_key = fields.get("routing_key", self._defaults.routing_key)
            properties = {"delivery_mode": _PERSISTENT} | fields.get("properties", {})
            header = plain_header(properties_of(properties | {"headers": _headers(fields)}))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise bad_request(f"a row cannot be understood: {error}") from None
        if not isinstance(exchange, str) or not isinstance(routing_key, str):
            raise bad_request("a row names no exchange, and the batch has none for it")
        return Address(exchange, routing_key), header


def _headers(fields: dict[str, Any]) -> dict[str, Value]:
    """Return the headers of a row: those with all their types where there are such, else those of text."""
    written = fields.get("headers_json")
    if written is not None:
        return loads(str(written).encode("utf-8", "surrogatepass"))
    headers = fields.get("headers", {})
    if not isinstance(headers, dict):
        raise TypeError("headers are no object")
    return headers
