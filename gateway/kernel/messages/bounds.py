"""Limits on the size and nesting of names, texts, arguments and parameters, in bytes as stored.

All protocols, HTTP, definitions and policies reach the kernel through the same calls, which check these limits before
anything changes. A refused request changes nothing; an accepted one can be stored.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments, Value

#: Bytes in a name of a queue, an exchange, a virtual host, a user or a policy: the limit of an AMQP short string.
LONGEST_NAME: Final = 255

#: Bytes in a routing key that AMQP can transmit, and so in every key set by an argument or a policy.
LONGEST_AMQP_KEY: Final = 255

#: Bytes in the routing key of a binding or message: the limit of a message record, and of an MQTT topic.
LONGEST_KEY: Final = 65_535

#: Words in the routing key of a binding: each may take a node in the index of its exchange, some 0.5 KB.
MOST_WORDS: Final = 1_024

#: Routing keys in the headers ``CC`` and ``BCC`` of one message: each is routed separately.
MOST_SENDER_KEYS: Final = 1_024

#: Bytes in a description.
LONGEST_TEXT: Final = 4_096

#: Bytes in the arguments of one queue, exchange, binding or policy, and values in them.
MOST_BYTES: Final = 131_072
MOST_VALUES: Final = 10_000

#: The same for the value of one parameter.
MOST_PARAMETER_BYTES: Final = 1_048_576
MOST_PARAMETER_VALUES: Final = 100_000

#: Nesting of tables and lists, as in AMQP's tables.
MOST_LEVELS: Final = 64

#: The range of signed and unsigned 64 bit integers.
LEAST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**64 - 1

#: The largest value of a count or size limit.
LARGEST_COUNT: Final = 2**63 - 1

#: Ten years: the longest TTL or lease, in milliseconds (R40).
LONGEST_MS: Final = 315_360_000_000

_NOT_UNICODE: Final = "it contains a lone surrogate, which UTF-8 cannot encode"

#: The approximate size of a number, or of the length and type of a name or text, in protocols and stores.
_OVERHEAD: Final = 9


def require_name(kind: str, name: str) -> None:
    """Check a name against AMQP's limit. ``kind`` is for example ``queue``. :raises PreconditionFailed: if it fails."""
    size = _size(f"{kind} name", name)
    if size > LONGEST_NAME:
        raise PreconditionFailed(f"{kind} name of {size} bytes is longer than {LONGEST_NAME}")


def require_text(what: str, text: str, most: int = LONGEST_TEXT) -> None:
    """Check that a text is valid UTF-8 and not too long. :raises PreconditionFailed: with the reason."""
    size = _size(what, text)
    if size > most:
        raise PreconditionFailed(f"{what} of {size} bytes is longer than {most}")


def require_binding_key(key: str) -> None:
    """Check the size of a binding's routing key. :raises PreconditionFailed: with the reason."""
    require_text("routing key", key, LONGEST_KEY)
    words = key.count(".") + 1
    if words > MOST_WORDS:
        raise PreconditionFailed(f"routing key of {words} words has more than {MOST_WORDS}")


def require_sender_keys(keys: Sequence[str]) -> None:
    """Check the number and size of a message's CC and BCC keys. :raises PreconditionFailed: with the reason."""
    if len(keys) > MOST_SENDER_KEYS:
        raise PreconditionFailed(f"invalid message: {len(keys)} keys in CC and BCC are more than {MOST_SENDER_KEYS}")
    for key in keys:
        if fault := fault_of_key(key):
            raise PreconditionFailed(f"invalid message: a key in CC or BCC is too long: {fault}")


def require_arguments(entity: str, arguments: Arguments) -> None:
    """Check that arguments are not too large to be stored. ``entity`` is for example ``queue 'q' in vhost '/'``.

    :raises PreconditionFailed: with the argument and the reason.
    """
    if not arguments:
        return
    total = count = 0
    for name, value in arguments.items():
        size, values, fault = _measured(value, MOST_VALUES)
        if fault or (fault := _fault_of_name(name)):
            raise PreconditionFailed(f"invalid arg '{_shown(name)}' for {entity}: {fault}")
        total, count = total + size + len(name), count + values
        if count > MOST_VALUES:
            break
    if fault := _excess(total, count, MOST_BYTES, MOST_VALUES):
        raise PreconditionFailed(f"invalid arguments for {entity}: {fault}")


def require_parameter(what: str, value: Value) -> None:
    """Check that a parameter's value is not too large to be stored. :raises PreconditionFailed: with the reason."""
    size, values, fault = _measured(value, MOST_PARAMETER_VALUES)
    if fault := fault or _excess(size, values, MOST_PARAMETER_BYTES, MOST_PARAMETER_VALUES):
        raise PreconditionFailed(f"invalid value of {what}: {fault}")


def require_headers(headers: Arguments) -> None:
    """Check that the headers of a message do not have too many values. :raises PreconditionFailed: with the number."""
    _, values, _ = _measured(dict(headers), MOST_VALUES)
    if values > MOST_VALUES:
        raise PreconditionFailed(f"invalid message: {values} values in its headers are more than {MOST_VALUES}")


def is_valid_key(value: Value) -> bool:
    """Return whether a value is a routing key or name that every protocol can transmit."""
    return isinstance(value, str) and fault_of_key(value) is None


def fault_of_key(text: str) -> str | None:
    """Return why a text is no routing key or name that every protocol can transmit; ``None`` if it is one."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return _NOT_UNICODE
    return f"{size} bytes are more than {LONGEST_AMQP_KEY}" if size > LONGEST_AMQP_KEY else None


def _size(what: str, text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise PreconditionFailed(f"{what} {ascii(text)[:80]} is not valid: {_NOT_UNICODE}") from None


def _fault_of_name(name: str) -> str | None:
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


def _measured(value: Value, most_values: int) -> tuple[int, int, str | None]:
    """Return the bytes and number of values in a value, and its fault; iterative, as deep values would overflow.

    Stops as soon as there are more than ``most_values``, so that refusing many costs no more than accepting some.
    """
    size = count = 0
    waiting: list[tuple[Value, int]] = [(value, 1)]
    while waiting:
        each, level = waiting.pop()
        size, count = size + _OVERHEAD, count + 1
        if isinstance(each, dict | list):
            if level > MOST_LEVELS:
                return size, count, f"more than {MOST_LEVELS} tables and lists inside each other"
            if (known := count + len(waiting) + len(each)) > most_values:
                return size, known, None
            if isinstance(each, dict):
                for name in each:
                    if fault := _fault_of_name(name):
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
