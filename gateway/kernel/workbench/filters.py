"""The filter of a search among the messages of a queue."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from gateway.kernel.messages.message import Message, Properties, Value

Matches: TypeAlias = Callable[[bytes], bool]
"""Returns whether a text, in UTF-8, matches."""

READY: Final = "ready"
UNACKNOWLEDGED: Final = "unacknowledged"
DELAYED: Final = "delayed"

STATES: Final = (READY, UNACKNOWLEDGED, DELAYED)
"""The states of messages, in the order in which a search visits them."""


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """The messages that a search finds: those that satisfy every condition that is not ``None``.

    ``headers`` and ``properties`` are conditions by name; ``None`` requires only that it is set. ``exchange`` is
    compared as a whole. A body is compared as the bytes that its publisher sent.
    """

    states: tuple[str, ...] = (READY,)
    key: Matches | None = None
    exchange: str | None = None
    headers: tuple[tuple[str, Matches | None], ...] = ()
    properties: tuple[tuple[str, Matches | None], ...] = ()
    body: Matches | None = None

    def takes(self, message: Message) -> bool:
        """Return whether a message satisfies every condition."""
        if self.exchange is not None and message.exchange != self.exchange:
            return False
        if self.key is not None and not self.key(_encoded(message.routing_key)):
            return False
        if (self.headers or self.properties) and not self._takes_properties(message.properties):
            return False
        return self.body is None or self.body(message.body)

    def _takes_properties(self, properties: Properties) -> bool:
        for name, matches in self.headers:
            if name not in properties.headers:
                return False
            if matches is not None and not matches(text_of(properties.headers[name])):
                return False
        for name, matches in self.properties:
            value = getattr(properties, name)
            if value is None or (matches is not None and not matches(text_of(value))):
                return False
        return True


def text_of(value: Value) -> bytes:
    """Return a value of a header as text: a number in decimal, a date in ISO 8601, a table as Python shows it."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, str | int | float | Decimal):
        return _encoded(str(value))
    return b"" if value is None else _encoded(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
