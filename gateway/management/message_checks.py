"""Check that a message published over HTTP can be delivered to consumers of every protocol.

AMQP's encoding enforces these limits, and MQTT and STOMP check them on arrival. A message that exceeds them would close
the connection of every consumer that receives it.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.bounds import LONGEST_KEY, LONGEST_MS, LONGEST_NAME, MOST_LEVELS
from gateway.kernel.messages.message import Properties, Value

#: Listed by name, because a compiled ``Properties`` has no type information of its fields.
_OTHER_FIELDS: Final = frozenset({"headers", "delivery_mode", "priority", "timestamp"})
_STRING_FIELDS: Final = tuple(field.name for field in fields(Properties) if field.name not in _OTHER_FIELDS)

_MILLISECONDS: Final = re.compile(r"[+-]?[0-9]+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_INT64: Final = 2**63 - 1
_MAX_UNSCALED: Final = 2**31 - 1
_MAX_PLACES: Final = 255


def require_deliverable(routing_key: str, properties: Properties) -> None:
    """Check that a message can be delivered. :raises PreconditionFailed: naming the field that prevents it."""
    _require_short("the routing key", routing_key, LONGEST_KEY)
    for name in _STRING_FIELDS:
        if (value := getattr(properties, name)) is not None:
            _require_short(f"property '{name}'", value)
    if properties.expiration is not None:
        _require_expiration(properties.expiration)
    if properties.timestamp is not None:
        _require_time("property 'timestamp'", properties.timestamp)
    _require_table(properties.headers, 1)


def _require_short(subject: str, text: str, max_size: int = LONGEST_NAME) -> None:
    size = len(_encoded(subject, text))
    if size > max_size:
        raise PreconditionFailed(f"{subject} has {size} bytes; the limit is {max_size}")


def _encoded(subject: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise PreconditionFailed(f"{subject} contains a lone surrogate, which UTF-8 cannot encode") from None


def _require_expiration(text: str) -> None:
    if _MILLISECONDS.fullmatch(text) is None or not 0 <= int(text) <= LONGEST_MS:
        raise PreconditionFailed(f"property 'expiration' must be milliseconds from 0 to {LONGEST_MS}, not '{text}'")


def _require_time(subject: str, time: datetime) -> None:
    if (time if time.tzinfo else time.replace(tzinfo=UTC)) < _EPOCH:
        raise PreconditionFailed(f"{subject} is before 1970")


def _require_table(table: Mapping[str, Value], level: int) -> None:
    for name, value in table.items():
        _require_short("a header name", name)
        _require_value(f"header '{name}'", value, level)


def _require_value(subject: str, value: Value, level: int) -> None:
    match value:
        case str():
            _encoded(subject, value)
        case bool():
            pass
        case int() if not -_MAX_INT64 - 1 <= value <= _MAX_INT64:
            raise PreconditionFailed(f"{subject} is an integer of more than 64 bits")
        case Decimal():
            _require_decimal(subject, value)
        case datetime():
            _require_time(subject, value)
        case dict() | list() if level >= MOST_LEVELS:
            raise PreconditionFailed(f"{subject} has more than {MOST_LEVELS} levels of nested tables and lists")
        case dict():
            _require_table(value, level + 1)
        case list():
            for item in value:
                _require_value(subject, item, level + 1)


def _require_decimal(subject: str, number: Decimal) -> None:
    _, digits, exponent = number.as_tuple()
    fits = isinstance(exponent, int) and -_MAX_PLACES <= exponent <= 10 and len(digits) <= 10
    if not fits or abs(number.scaleb(max(0, -int(exponent)))) > _MAX_UNSCALED:
        raise PreconditionFailed(f"{subject} is a decimal of more than 32 bits or {_MAX_PLACES} places")
