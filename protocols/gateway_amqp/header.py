"""The header of AMQP messages as the kernel uses it, decoded once per distinct header.

Most messages of a connection have equal properties, so that the header costs one lookup. Other publishers put an id or
a time into each message, so a miss is cheap as well: the headers table is validated, but decoded only if it may contain
``CC`` or ``BCC``.
"""

import re
from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Header, HeaderEdit, Properties, Value
from gateway.kernel.names import REPLY_TO
from gateway_amqp.properties import decode_properties, encoded_property, scan_properties, splice_property
from gateway_amqp.splices import EMPTY_TABLE, fields_of, mentions, with_array, with_fields, without_fields
from gateway_amqp.tables import decode_table, encode_table, sized

MAX_SHARED: Final = 1024
"""Cached headers; when there are more, all are dropped, which costs less than a choice."""

MAX_SHARED_BYTES: Final = 512
"""Longer headers are not cached: long values seldom repeat."""

MAX_EXPIRATION_MS: Final = 315_360_000_000
"""Ten years, RabbitMQ's limit."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class AmqpHeaderFormat:
    """Properties in AMQP 0-9-1 encoding. Owns the cached headers."""

    name: str = "amqp-0-9-1"

    def __init__(self) -> None:
        self._shared: dict[bytes, Header] = {}

    def header(self, raw: bytes) -> Header:
        """Return the header of these bytes. A ``BCC`` field is in ``sender_keys`` and ``stored_raw``, not in ``raw``.

        :raises MalformedField: when ``raw`` cannot be decoded; the header that is returned can be.

        :raises PreconditionFailed: for an invalid expiration, ``CC`` or ``BCC``, in RabbitMQ's words.
        """
        return self._shared.get(raw) or self._learn(raw)

    def properties(self, raw: bytes) -> Properties:
        """Decode all properties. :raises MalformedField: when ``raw`` is not well formed."""
        return decode_properties(raw)

    def edited(self, raw: bytes, edit: HeaderEdit) -> bytes:
        """Return ``raw`` as edited; the bytes of the rest are unchanged."""
        table = encoded_property(raw, "headers")
        if not table or table == EMPTY_TABLE or not mentions(table, (*edit.headers, *edit.without)):
            table = sized(table[4:] + self._fields(edit))  # most messages: what is set was encoded for the one before
        else:
            table = _replaced(table, edit)
        raw = splice_property(raw, "headers", table)
        return splice_property(raw, "expiration", b"") if edit.drops_expiration else raw

    def _fields(self, edit: HeaderEdit) -> bytes:
        """Return the headers that an edit sets as the fields of a table."""
        fields = edit.encoded.get(self.name)
        if fields is None:
            fields = edit.encoded[self.name] = encode_table(edit.headers)[4:]
        return fields

    def stamped(self, raw: bytes, timestamp_s: int) -> bytes:
        """Return ``raw`` with this timestamp; the bytes of the rest are unchanged."""
        return splice_property(raw, "timestamp", timestamp_s.to_bytes(8, "big"))

    def _learn(self, raw: bytes) -> Header:
        header = self._read(raw)
        if len(raw) <= MAX_SHARED_BYTES:
            remember(self._shared, raw, header, MAX_SHARED)
        return header

    def _read(self, raw: bytes) -> Header:
        values = scan_properties(raw)
        expiration = values.get("expiration")
        header = Header(
            self,
            raw,
            is_persistent=values.get("delivery_mode") == 2,
            priority=values.get("priority", 0),
            expiration_ms=None if expiration is None else expiration_ms(expiration),
            user_id=values.get("user_id"),
            is_ordinary="user_id" not in values and values.get("reply_to") != REPLY_TO,
        )
        if b"CC" in raw and "headers" in values:
            _address(header, values["headers"])
        return header


AMQP: Final = AmqpHeaderFormat()
"""The one format object of the process: every AMQP header is shared through it."""


def expiration_ms(expiration: str) -> int:
    """Parse an expiration as RabbitMQ does: a sign is allowed, spaces are not.

    :raises PreconditionFailed: if it is not a number of milliseconds, or out of range.
    """
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
    """Format text as Erlang prints it: quoted if printable, otherwise a list of bytes."""
    if not text.isprintable():
        return str(list(text.encode())).replace(" ", "")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _replaced(table: bytes, edit: HeaderEdit) -> bytes:
    """Return an edited table that has fields of these names."""
    if edit.without:
        table = without_fields(table, edit.without)
    headers = edit.headers
    deaths = headers.get("x-death")
    if isinstance(deaths, list):  # a client may have sent a longer list than ours
        table = with_array(table, "x-death", deaths)
        headers = {name: value for name, value in headers.items() if name != "x-death"}
    return with_fields(table, headers)


def _address(header: Header, table: bytes) -> None:
    """Read additional routing keys from ``CC`` and ``BCC``, and remove ``BCC`` from what consumers receive."""
    headers, _ = decode_table(table)
    header.sender_keys = (*_keys(headers, "CC", table), *_keys(headers, "BCC", table))
    if "BCC" in headers:
        header.raw = splice_property(header.raw, "headers", without_fields(table, ("BCC",)))
    header.is_ordinary = header.is_ordinary and not header.sender_keys


def _keys(headers: dict[str, Value], name: str, table: bytes) -> list[str]:
    """Return the keys in one of the two headers; items that are not strings are ignored, as in RabbitMQ."""
    if name not in headers:
        return []
    keys = headers[name]
    if not isinstance(keys, list):
        kind = next(field.kind for field in fields_of(table) if field.name == name.encode())
        raise PreconditionFailed(f'invalid message: {{unacceptable_type_in_header,"{name}",{kind.name}}}')
    return [key for key in keys if isinstance(key, str)]
