"""The header format of messages published by the broker itself: a table of properties."""

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final, cast

from gateway.kernel.errors import ProtocolViolation
from gateway.kernel.messages.message import Header, HeaderEdit, Properties, Value
from gateway.kernel.messages.values import dumps, loads


class NativeFormat:
    """Encodes properties as a table of values."""

    name = "plain"

    def header(self, raw: bytes) -> Header:
        """Return the header for these bytes; ``BCC`` is in ``sender_keys`` and ``stored_raw``, but not in ``raw``.

        :raises ProtocolViolation: if the broker did not write them.
        """
        properties = self.properties(raw)
        expiration = properties.expiration
        if expiration is not None and not _DIGITS.fullmatch(expiration):
            raise _damaged(f"the expiration {expiration[:20]!r}")
        headers = properties.headers
        header = Header(
            self,
            raw if "BCC" not in headers else self.edited(raw, HeaderEdit({}, ("BCC",))),
            is_persistent=properties.delivery_mode == 2,
            priority=properties.priority or 0,
            expiration_ms=None if expiration is None else int(expiration),
            sender_keys=(*_keys(headers, "CC"), *_keys(headers, "BCC")),
        )
        header.stored_raw = raw
        return header

    def properties(self, raw: bytes) -> Properties:
        """Decode the properties. :raises ProtocolViolation: if the broker did not write these bytes."""
        table = _fields(raw)
        properties = Properties(**cast(Mapping[str, Any], table))
        for name, kinds in _KINDS.items():
            if not isinstance(table[name], kinds):
                raise _damaged(f"a {name} of type {type(table[name]).__name__}")
        return properties

    def edited(self, raw: bytes, edit: HeaderEdit) -> bytes:
        """Return the bytes as edited."""
        table = _fields(raw)
        earlier = table["headers"]
        if not isinstance(earlier, dict):
            raise _damaged("headers that are no table")
        kept = {name: value for name, value in earlier.items() if name not in edit.without}
        table["headers"] = kept | dict(edit.headers)
        if edit.drops_expiration:
            table["expiration"] = None
        return dumps(table)

    def stamped(self, raw: bytes, timestamp_s: int) -> bytes:
        """Return the bytes with this timestamp."""
        return dumps(_fields(raw) | {"timestamp": datetime.fromtimestamp(timestamp_s, UTC)})


#: The names of the properties, and the types of those that have no text.
_NAMES: Final = frozenset(f.name for f in fields(Properties))
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(_NAMES, (str, type(None))),
    "headers": (dict,),
    "delivery_mode": (int, type(None)),
    "priority": (int, type(None)),
    "timestamp": (datetime, type(None)),
}

#: The expiration in whole milliseconds.
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,20}")


def _fields(raw: bytes) -> dict[str, Value]:
    """Return the properties by name. :raises ProtocolViolation: if the broker did not write these bytes."""
    try:
        table = loads(raw)
    except ValueError as flaw:
        raise _damaged(str(flaw)) from None
    if table.keys() != _NAMES:
        raise _damaged(f"other names than those of properties: {sorted(table.keys() ^ _NAMES)[:3]}"[:200])
    return table


def _damaged(flaw: str) -> ProtocolViolation:
    return ProtocolViolation(f"the stored header of a message has {flaw}")


def _keys(headers: Mapping[str, Value], name: str) -> list[str]:
    """Return the further routing keys in a header; entries that are no strings are ignored, as in RabbitMQ."""
    keys = headers.get(name)
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


NATIVE: Final = NativeFormat()


def native_header(properties: Properties) -> Header:
    """Return a header with these properties."""
    table: dict[str, Value] = {f.name: getattr(properties, f.name) for f in fields(Properties)}
    table["headers"] = dict(properties.headers)
    return NATIVE.header(dumps(table))
