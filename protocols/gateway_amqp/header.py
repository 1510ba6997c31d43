"""What the kernel wants to know of every AMQP message, read once per distinct header.

Publishers repeat themselves: most messages of a connection carry equal properties, and then the header costs one
lookup. Others put an id or a time into each message, so a miss is kept cheap as well: the headers table is checked
but decoded only if it may hold ``CC`` or ``BCC``.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Header, Properties, Value
from gateway.kernel.names import REPLY_TO
from gateway_amqp.properties import decode_properties, scan_properties, splice_property
from gateway_amqp.splices import EMPTY_TABLE, fields_of, with_array, with_fields, without_fields
from gateway_amqp.tables import decode_table

MAX_SHARED: Final = 1024
"""Headers kept for sharing; when so many have gathered, all are forgotten, which costs less than choosing."""

MAX_SHARED_BYTES: Final = 512
"""Longer headers are not kept: what is long is seldom repeated."""

MAX_EXPIRATION_MS: Final = 315_360_000_000
"""Ten years, RabbitMQ's limit."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class AmqpHeaderFormat:
    """Properties as AMQP 0-9-1 writes them. Owns the shared headers."""

    name: str = "amqp-0-9-1"

    def __init__(self) -> None:
        self._shared: dict[bytes, Header] = {}

    def header(self, raw: bytes) -> Header:
        """Return the header of these bytes; a ``BCC`` field is in its ``sender_keys`` and ``kept``, not in its ``raw``.

        :raises MalformedField: when ``raw`` cannot be decoded; what is returned can be.
        :raises PreconditionFailed: for an expiration, ``CC`` or ``BCC`` that RabbitMQ refuses, in its words.
        """
        return self._shared.get(raw) or self._learn(raw)

    def properties(self, raw: bytes) -> Properties:
        """Decode everything. :raises MalformedField: when ``raw`` is not well formed."""
        return decode_properties(raw)

    def edited(
        self, raw: bytes, headers: Mapping[str, Value], without: Collection[str], drops_expiration: bool
    ) -> bytes:
        """Return ``raw`` with these headers set and others gone; what is not named keeps its very bytes."""
        table = without_fields(scan_properties(raw).get("headers", EMPTY_TABLE), without)
        deaths = headers.get("x-death")
        if isinstance(deaths, list):  # a client may have brought some that say more than ours
            table = with_array(table, "x-death", deaths)
            headers = {name: value for name, value in headers.items() if name != "x-death"}
        raw = splice_property(raw, "headers", with_fields(table, headers))
        return splice_property(raw, "expiration", b"") if drops_expiration else raw

    def _learn(self, raw: bytes) -> Header:
        header = self._read(raw)
        if len(raw) <= MAX_SHARED_BYTES:
            if len(self._shared) >= MAX_SHARED:
                self._shared.clear()
            self._shared[raw] = header
        return header

    def _read(self, raw: bytes) -> Header:
        values = scan_properties(raw)
        expiration = values.get("expiration")
        header = Header(
            self,
            raw,
            is_persistent=values.get("delivery_mode") == 2,
            priority=values.get("priority", 0),
            expiration_ms=None if expiration is None else _milliseconds(expiration),
            user_id=values.get("user_id"),
            is_ordinary="user_id" not in values and values.get("reply_to") != REPLY_TO,
        )
        if b"CC" in raw and "headers" in values:
            _address(header, values["headers"])
        return header


AMQP: Final = AmqpHeaderFormat()
"""The one format object of the process: every AMQP header is shared through it."""


def _milliseconds(expiration: str) -> int:
    """Read an expiration as RabbitMQ does, which takes a sign but no spaces."""
    number = _INTEGER.match(expiration)
    if number is None:
        raise _invalid_expiration(expiration, "no_integer")
    if number.end() < len(expiration):
        raise _invalid_expiration(expiration, f"{{leftover_string,{_as_erlang(expiration[number.end() :])}}}")
    milliseconds = int(expiration)
    if milliseconds < 0:
        raise _invalid_expiration(expiration, f"{{value_negative,{milliseconds}}}")
    if milliseconds > MAX_EXPIRATION_MS:
        raise _invalid_expiration(expiration, f"{{value_too_large,{milliseconds}}}")
    return milliseconds


def _invalid_expiration(expiration: str, reason: str) -> PreconditionFailed:
    return PreconditionFailed(f"invalid expiration '{expiration}': {reason}")


def _as_erlang(text: str) -> str:
    """Write text as Erlang prints it: quoted if one can read it, as a list of bytes otherwise."""
    if not text.isprintable():
        return str(list(text.encode())).replace(" ", "")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _address(header: Header, table: bytes) -> None:
    """Take further routing keys from ``CC`` and ``BCC``, and ``BCC`` out of what consumers will see."""
    headers, _ = decode_table(table)
    header.sender_keys = (*_keys(headers, "CC", table), *_keys(headers, "BCC", table))
    if "BCC" in headers:
        header.raw = splice_property(header.raw, "headers", without_fields(table, ("BCC",)))
    header.is_ordinary = header.is_ordinary and not header.sender_keys


def _keys(headers: dict[str, Value], name: str, table: bytes) -> list[str]:
    """Return the keys in one of the two; what is not a string among them is passed over, as in RabbitMQ."""
    if name not in headers:
        return []
    keys = headers[name]
    if not isinstance(keys, list):
        kind = next(field.kind for field in fields_of(table) if field.name == name.encode())
        raise PreconditionFailed(f'invalid message: {{unacceptable_type_in_header,"{name}",{kind.name}}}')
    return [key for key in keys if isinstance(key, str)]
