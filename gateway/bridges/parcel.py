"""The messages of a bridge, and the interfaces of its two ends."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pika.spec import BasicProperties


@dataclass(slots=True)
class Parcel:
    """A message between two brokers. ``tag`` is the source's name for it; ``properties`` are those of AMQP 0-9-1."""

    tag: int
    exchange: str
    routing_key: str
    properties: BasicProperties
    body: bytes
    is_redelivered: bool = False


class MessageSource(Protocol):
    """The end that messages come from. Not accepted messages return to their queue when it closes."""

    def start(self, receive: Callable[[Parcel], None]) -> None:
        """Begin to call ``receive`` with each message."""
        ...

    def accept(self, tag: int) -> None:
        """Settle a message: it is safe at the destination, or was sent if that is enough."""
        ...

    def requeue(self, tag: int) -> None:
        """Return a message to its queue."""
        ...

    def pause(self, is_paused: bool) -> None:
        """Stop receiving, or continue."""
        ...

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        ...


class MessageDestination(Protocol):
    """The end that messages go to. ``on_ready`` is called when it is no longer blocked."""

    on_ready: Callable[[], None]

    @property
    def is_blocked(self) -> bool:
        """Whether it accepts no messages for now."""
        ...

    def publish(self, parcel: Parcel, done: Callable[[bool], None]) -> None:
        """Send a message. ``done`` is called with ``True`` when it is safe there, with ``False`` if it was refused."""
        ...

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        ...
