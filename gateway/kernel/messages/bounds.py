"""How large and how deep what clients and operators name and say may be, in bytes as stored: one place for all doors.

Every protocol, HTTP, definitions and policies reach the kernel by the same calls, which check here before anything
changes. What is refused leaves no trace, and what is accepted can be recorded.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments, Value

#: Bytes in a name: of a queue, an exchange, a virtual host, a user, a policy. What a short string of AMQP holds.
LONGEST_NAME: Final = 255

#: Bytes in a routing key that AMQP can say, so in every key that an argument or a policy sets.
LONGEST_SAID_KEY: Final = 255

#: Bytes in the routing key of a binding or message: what the record of a message holds, and a topic of MQTT.
LONGEST_KEY: Final = 65_535

#: Words in the routing key of a binding: each may take a node in the index of its exchange, some 0.5 KB.
MOST_WORDS: Final = 1_024

#: Routing keys in the headers ``CC`` and ``BCC`` of one message: each is routed by itself.
MOST_SENDER_KEYS: Final = 1_024

#: Bytes in a text that describes something.
LONGEST_TEXT: Final = 4_096

#: Bytes in the arguments of one queue, exchange, binding or policy, and values in them.
MOST_BYTES: Final = 131_072
MOST_VALUES: Final = 10_000

#: The same of the value of one parameter.
MOST_PARAMETER_BYTES: Final = 1_048_576
MOST_PARAMETER_VALUES: Final = 100_000

#: Tables and lists inside each other, as in AMQP's tables.
MOST_LEVELS: Final = 64

#: What fits into 64 bits, with a sign or without one.
LEAST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**64 - 1

#: The largest count or size that a limit may be.
LARGEST_COUNT: Final = 2**63 - 1

#: Ten years: the longest time to live or lease, in milliseconds (R40).
LONGEST_MS: Final = 315_360_000_000

_NOT_UNICODE: Final = "it holds half a character, which UTF-8 cannot write"

#: Bytes of a number, a name's or text's length and kind, as near as protocols and stores agree.
_OVERHEAD: Final = 9


def require_name(kind: str, name: str) -> None:
    """Refuse a name that no AMQP client could say. ``kind`` reads ``queue``. :raises PreconditionFailed: saying why."""
    size = _size(f"{kind} name", name)
    if size > LONGEST_NAME:
        raise PreconditionFailed(f"{kind} name of {size} bytes is longer than {LONGEST_NAME}")


def require_text(what: str, text: str, most: int = LONGEST_TEXT) -> None:
    """Refuse a text that is too long, or that UTF-8 cannot write. :raises PreconditionFailed: saying which."""
    size = _size(what, text)
    if size > most:
        raise PreconditionFailed(f"{what} of {size} bytes is longer than {most}")


def require_binding_key(key: str) -> None:
    """Refuse a routing key that no record or index holds. :raises PreconditionFailed: saying why."""
    require_text("routing key", key, LONGEST_KEY)
    words = key.count(".") + 1
    if words > MOST_WORDS:
        raise PreconditionFailed(f"routing key of {words} words has more than {MOST_WORDS}")


def require_sender_keys(keys: Sequence[str]) -> None:
    """Refuse further keys of a message that are too many or too long. :raises PreconditionFailed: saying why."""
    if len(keys) > MOST_SENDER_KEYS:
        raise PreconditionFailed(f"invalid message: {len(keys)} keys in CC and BCC are more than {MOST_SENDER_KEYS}")
    for key in keys:
        if fault := fault_of_said_key(key):
            raise PreconditionFailed(f"invalid message: a key in CC or BCC is too long: {fault}")


def require_arguments(entity: str, arguments: Arguments) -> None:
    """Refuse arguments that are too large to be kept. ``entity`` reads ``queue 'q' in vhost '/'``.

    :raises PreconditionFailed: naming the argument and its fault.
    """
    if not arguments:
        return
    total = count = 0
    for name, value in arguments.items():
        size, values, fault = _weighed(value)
        if fault or (fault := _fault_of_key(name)):
            raise PreconditionFailed(f"invalid arg '{_shown(name)}' for {entity}: {fault}")
        total, count = total + size + len(name), count + values
    if fault := _excess(total, count, MOST_BYTES, MOST_VALUES):
        raise PreconditionFailed(f"invalid arguments for {entity}: {fault}")


def require_parameter(what: str, value: Value) -> None:
    """Refuse the value of a parameter that is too large to be kept. :raises PreconditionFailed: saying why."""
    size, values, fault = _weighed(value)
    if fault := fault or _excess(size, values, MOST_PARAMETER_BYTES, MOST_PARAMETER_VALUES):
        raise PreconditionFailed(f"invalid value of {what}: {fault}")


def is_said_key(value: Value) -> bool:
    """Tell whether a value is a routing key, or a name, that every protocol can say."""
    return isinstance(value, str) and fault_of_said_key(value) is None


def fault_of_said_key(text: str) -> str | None:
    """Return why a text is no routing key or name that every protocol can say; ``None`` if it is one."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return _NOT_UNICODE
    return f"{size} bytes are more than {LONGEST_SAID_KEY}" if size > LONGEST_SAID_KEY else None


def _size(what: str, text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise PreconditionFailed(f"{what} {ascii(text)[:80]} is not valid: {_NOT_UNICODE}") from None


def _fault_of_key(name: str) -> str | None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return _NOT_UNICODE
    return f"its name has {size} bytes, more than {LONGEST_NAME}" if size > LONGEST_NAME else None


def _shown(name: str) -> str:
    return name if name.isascii() and len(name) <= LONGEST_NAME else ascii(name[:80])[1:-1]


def _excess(size: int, values: int, most_bytes: int, most_values: int) -> str | None:
    if values > most_values:
        return f"{values} values are more than {most_values}"
    return f"{size} bytes are more than {most_bytes}" if size > most_bytes else None


def _weighed(value: Value) -> tuple[int, int, str | None]:
    """Return bytes and values of a value, and its fault; without recursion, as what is deep must not end the walk."""
    size = count = 0
    waiting: list[tuple[Value, int]] = [(value, 1)]
    while waiting:
        each, level = waiting.pop()
        size, count = size + _OVERHEAD, count + 1
        if isinstance(each, dict | list):
            if level > MOST_LEVELS:
                return size, count, f"more than {MOST_LEVELS} tables and lists inside each other"
            if isinstance(each, dict):
                for name in each:
                    if fault := _fault_of_key(name):
                        return size, count, f"in '{_shown(name)}': {fault}"
                    size += len(name.encode())
                waiting.extend((item, level + 1) for item in each.values())
            else:
                waiting.extend((item, level + 1) for item in each)
        elif fault := _fault_of_scalar(each):
            return size, count, fault
        elif isinstance(each, str):
            size += len(each.encode())
        elif isinstance(each, bytes):
            size += len(each)
    return size, count, None


def _fault_of_scalar(value: Value) -> str | None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return _NOT_UNICODE
    elif isinstance(value, int) and not LEAST_INTEGER <= value <= LARGEST_INTEGER:
        return "a number of more than 64 bits"
    elif isinstance(value, Decimal) and len(value.as_tuple().digits) > 100:
        return "a decimal of more than 100 digits"
    elif not isinstance(value, int | float | bytes | Decimal | datetime | None):
        return f"a {type(value).__name__} is not a value"
    return None
