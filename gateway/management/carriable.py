"""What consumers of every protocol can be told of a message: who publishes by HTTP is refused the rest.

AMQP's own publishers cannot say more, and MQTT's and STOMP's are held to it where they come in. What slipped in here
would end the connection of whoever is sent it, again and again.
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

#: Told by name: a compiled ``Properties`` does not know the types of its fields.
_OTHERS: Final = frozenset({"headers", "delivery_mode", "priority", "timestamp"})
_TEXTS: Final = tuple(field.name for field in fields(Properties) if field.name not in _OTHERS)

_MILLISECONDS: Final = re.compile(r"[+-]?[0-9]+")
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_INTEGER: Final = 2**63 - 1
_LARGEST_UNSCALED: Final = 2**31 - 1
_MOST_PLACES: Final = 255


def require_carriable(routing_key: str, properties: Properties) -> None:
    """Insist that a message can be sent to anybody. :raises PreconditionFailed: naming what is in the way."""
    _require_short("the routing key", routing_key, LONGEST_KEY)
    for name in _TEXTS:
        if (said := getattr(properties, name)) is not None:
            _require_short(f"property '{name}'", said)
    if properties.expiration is not None:
        _require_expiration(properties.expiration)
    if properties.timestamp is not None:
        _require_time("property 'timestamp'", properties.timestamp)
    _require_table(properties.headers, 1)


def _require_short(what: str, text: str, longest: int = LONGEST_NAME) -> None:
    size = len(_encoded(what, text))
    if size > longest:
        raise PreconditionFailed(f"{what} has {size} bytes, it may have {longest}")


def _encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise PreconditionFailed(f"{what} holds half a character, which UTF-8 cannot write") from None


def _require_expiration(text: str) -> None:
    if _MILLISECONDS.fullmatch(text) is None or not 0 <= int(text) <= LONGEST_MS:
        raise PreconditionFailed(f"property 'expiration' must be milliseconds from 0 to {LONGEST_MS}, not '{text}'")


def _require_time(what: str, time: datetime) -> None:
    if (time if time.tzinfo else time.replace(tzinfo=UTC)) < _BEGINNING:
        raise PreconditionFailed(f"{what} is before 1970")


def _require_table(table: Mapping[str, Value], level: int) -> None:
    for name, value in table.items():
        _require_short("the name of a header", name)
        _require_value(f"header '{name}'", value, level)


def _require_value(what: str, value: Value, level: int) -> None:
    match value:
        case str():
            _encoded(what, value)
        case bool():
            pass
        case int() if not -_LARGEST_INTEGER - 1 <= value <= _LARGEST_INTEGER:
            raise PreconditionFailed(f"{what} is a number of more than 64 bits")
        case Decimal():
            _require_decimal(what, value)
        case datetime():
            _require_time(what, value)
        case dict() | list() if level >= MOST_LEVELS:
            raise PreconditionFailed(f"{what} has more than {MOST_LEVELS} tables and lists inside each other")
        case dict():
            _require_table(value, level + 1)
        case list():
            for item in value:
                _require_value(what, item, level + 1)


def _require_decimal(what: str, number: Decimal) -> None:
    _, digits, exponent = number.as_tuple()
    fits = isinstance(exponent, int) and -_MOST_PLACES <= exponent <= 10 and len(digits) <= 10
    if not fits or abs(number.scaleb(max(0, -int(exponent)))) > _LARGEST_UNSCALED:
        raise PreconditionFailed(f"{what} is a decimal of more than 32 bits or {_MOST_PLACES} places")
