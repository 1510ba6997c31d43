"""Avro's logical types: times, dates, decimals. Also values as JSON text, where a part has no type of its own."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from gateway.columnar.bodies.body_schema import TIMESTAMP, BodyRefused, moment_us

#: Days from 1970 to the year 1 and to the end of 9999.
_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896

_DAY_US: Final = 86_400_000_000

_MOST_DIGITS: Final = 38

_EXACT: Final = Context(prec=80)

Logical = tuple[pa.DataType, Callable[[Any], Any]]
"""The type of a logical type, and the conversion of its plain values."""


def logical(schema: Mapping[str, Any]) -> Logical | None:
    """Return the logical type of a schema; ``None`` if it has none that is valid, so that the plain type applies."""
    name = schema.get("logicalType")
    if name == "decimal":
        return _decimal(schema)
    return _TYPES.get((str(schema["type"]), str(name)))


def _decimal(schema: Mapping[str, Any]) -> Logical | None:
    digits, scale = schema.get("precision"), schema.get("scale", 0)
    if schema["type"] not in ("bytes", "fixed") or not isinstance(digits, int) or not isinstance(scale, int):
        return None
    if not 0 <= scale <= digits <= _MOST_DIGITS or digits < 1:
        return None

    def convert(raw: bytes) -> Decimal:
        unscaled = int.from_bytes(raw, "big", signed=True) if len(raw) <= 32 else 10**_MOST_DIGITS
        if abs(unscaled) >= 10**digits:
            raise BodyRefused(f"a decimal of more than {digits} digits")
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    return pa.decimal128(digits, scale), convert


def _date(days: int) -> int:
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise BodyRefused(f"the day {days} since 1970 is not in the years 1 to 9999")
    return days


def _time_us(microseconds: int) -> int:
    if not 0 <= microseconds < _DAY_US:
        raise BodyRefused(f"{microseconds} µs is no time of day")
    return microseconds


_LOCAL: Final = pa.timestamp("us")

#: The logical types by plain type and name.
_TYPES: Final[Mapping[tuple[str, str], Logical]] = {
    ("long", "timestamp-millis"): (TIMESTAMP, lambda value: moment_us(value * 1000)),
    ("long", "timestamp-micros"): (TIMESTAMP, moment_us),
    ("long", "local-timestamp-millis"): (_LOCAL, lambda value: moment_us(value * 1000)),
    ("long", "local-timestamp-micros"): (_LOCAL, moment_us),
    ("int", "date"): (pa.date32(), _date),
    ("int", "time-millis"): (pa.time64("us"), lambda value: _time_us(value * 1000)),
    ("long", "time-micros"): (pa.time64("us"), _time_us),
}


def as_json_text(kind: pa.DataType, value: Any) -> str:
    """Return a value of a type as JSON text: times as ISO 8601, decimals as text, bytes in hexadecimal digits."""
    plain = pa.scalar(value, kind).as_py(maps_as_pydicts="lossy")
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    match value:
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return str(value)
