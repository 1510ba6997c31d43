"""The header format of messages published by the broker itself: a table of properties."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final, cast

from gateway.kernel.messages.message import Header, Properties, Value
from gateway.kernel.messages.values import dumps, loads


class NativeFormat:
    """Encodes properties as a table of values."""

    name = "plain"

    def header(self, raw: bytes) -> Header:
        """Return the header for these bytes; ``BCC`` is in ``sender_keys`` and ``stored_raw``, but not in ``raw``."""
        properties = self.properties(raw)
        expiration = properties.expiration
        headers = properties.headers
        header = Header(
            self,
            raw if "BCC" not in headers else self.edited(raw, {}, ("BCC",), False),
            is_persistent=properties.delivery_mode == 2,
            priority=properties.priority or 0,
            expiration_ms=None if expiration is None else int(expiration),
            sender_keys=(*_keys(headers, "CC"), *_keys(headers, "BCC")),
        )
        header.stored_raw = raw
        return header

    def properties(self, raw: bytes) -> Properties:
        """Decode the properties."""
        return Properties(**cast(Mapping[str, Any], loads(raw)))

    def edited(
        self, raw: bytes, headers: Mapping[str, Value], without: Collection[str], drops_expiration: bool
    ) -> bytes:
        """Return the bytes with some headers set, others removed and, on request, no expiration."""
        table = loads(raw)
        earlier = table["headers"]
        assert isinstance(earlier, dict)
        table["headers"] = {name: value for name, value in earlier.items() if name not in without} | dict(headers)
        if drops_expiration:
            table["expiration"] = None
        return dumps(table)

    def stamped(self, raw: bytes, timestamp_s: int) -> bytes:
        """Return the bytes with this timestamp."""
        return dumps(loads(raw) | {"timestamp": datetime.fromtimestamp(timestamp_s, UTC)})


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
