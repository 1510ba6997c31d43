"""The distribution of messages over bound destinations by weight and by a hash of one of their values.

The value is the routing key, or the header or the property that the exchange's arguments name. A binding key is a
weight. When a destination is bound or unbound, only its share of the values moves.
"""

import re
from collections.abc import Callable
from typing import Final
from zlib import crc32

from gateway.api import (
    Arguments,
    Binding,
    Destination,
    Message,
    PreconditionFailed,
    Properties,
    Value,
)
from gateway_exchanges.weighted_slots import SLOTS, WeightedSlots

#: The properties that ``hash-property`` may name.
PROPERTIES: Final[dict[str, Callable[[Properties], Value]]] = {
    "correlation_id": lambda properties: properties.correlation_id,
    "message_id": lambda properties: properties.message_id,
    "timestamp": lambda properties: properties.timestamp and int(properties.timestamp.timestamp()),
}

#: The largest weight, so that sums of weights stay exact.
MOST_WEIGHT: Final = 2**31 - 1

_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


class ConsistentHash:
    """To one destination, chosen by weight and a hash: equal values reach the same one.

    A destination with several bindings has the sum of their weights.

    All messages without the value go to the same destination.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._value_of = _reader(arguments)
        self.routes_by_key = self._value_of is None
        self._weight_by_destination: dict[Destination, int] = {}
        self._slots: WeightedSlots[Destination] = WeightedSlots()

    def bind(self, binding: Binding) -> None:
        """Add a binding. :raises PreconditionFailed: if its key is not a weight."""
        self._add(binding.destination, _weight(binding.routing_key))

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        self._add(binding.destination, -_weight(binding.routing_key))

    def route(self, message: Message) -> tuple[Destination, ...]:
        """Return the destination of a message."""
        value = message.routing_key.encode() if self._value_of is None else _bytes_of(self._value_of(message))
        destination = self._slots.at(crc32(value) % SLOTS)
        return () if destination is None else (destination,)

    def _add(self, destination: Destination, weight: int) -> None:
        total = self._weight_by_destination.pop(destination, 0) + weight
        if total:
            self._weight_by_destination[destination] = total
        self._slots.set_weight(destination, f"{type(destination).__name__} {destination.name}", total)


def _reader(arguments: Arguments) -> Callable[[Message], Value] | None:
    """Return a function that reads the hashed value of a message; ``None`` for the routing key.

    :raises PreconditionFailed: if the arguments are invalid.
    """
    header, property = (_text(arguments, name) for name in ("hash-header", "hash-property"))
    if header is not None and property is not None:
        raise PreconditionFailed("hash-header and hash-property are mutually exclusive")
    if header is not None:
        return lambda message: message.headers.get(header)
    if property is None:
        return None
    read = PROPERTIES.get(property)
    if read is None:
        raise PreconditionFailed(f"Unsupported property: {property}")
    return lambda message: read(message.properties)


def _text(arguments: Arguments, name: str) -> str | None:
    value = arguments.get(name)
    if name in arguments and not isinstance(value, str):
        raise PreconditionFailed(f"{name} must be a string")
    return value if isinstance(value, str) else None


def _weight(key: str) -> int:
    """Return the weight that a binding key contains. :raises PreconditionFailed: with RabbitMQ's texts."""
    if not _NUMBER.fullmatch(key):
        raise PreconditionFailed(f"The binding key must be an integer: {_as_erlang(key)}")
    weight = int(key)
    if weight < 1:
        raise PreconditionFailed("The binding key must be greater than 0")
    if weight > MOST_WEIGHT:
        raise PreconditionFailed(f"The binding key must be at most {MOST_WEIGHT}")
    return weight


def _as_erlang(key: str) -> str:
    """Return a binary as RabbitMQ shows it."""
    if key.isascii() and key.isprintable():
        return f'<<"{key}">>' if key else "<<>>"
    return f"<<{','.join(str(byte) for byte in key.encode())}>>"


def _bytes_of(value: Value) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else repr(value).encode()
