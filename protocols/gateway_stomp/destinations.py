"""Parser of destinations: from a header's value to a queue, or an exchange and a routing key."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway_stomp.errors import StompError


class DestinationKind(Enum):
    """The kinds of destinations, by prefix."""

    QUEUE = "/queue"  # created by SEND and SUBSCRIBE
    AMQ_QUEUE = "/amq/queue"  # must exist
    REPLY_QUEUE = "/reply-queue"  # must exist; the name may contain slashes
    TEMP_QUEUE = "/temp-queue"  # owned by the client, for replies
    TOPIC = "/topic"
    EXCHANGE = "/exchange"


#: The prefixes in the order of RabbitMQ's ERROR.
_PREFIXES: Final = "/temp-queue, /exchange, /topic, /queue, /amq/queue, /reply-queue/"


@dataclass(frozen=True, slots=True)
class Destination:
    """A queue's name, or an exchange's name and a routing key. ``written`` is the header's value."""

    kind: DestinationKind
    name: str
    exchange: str
    written: str

    @property
    def is_queue(self) -> bool:
        """Whether messages are published to the queue of this name."""
        return self.kind in (DestinationKind.QUEUE, DestinationKind.AMQ_QUEUE, DestinationKind.REPLY_QUEUE)


def parse(written: str, topic_exchange: str) -> Destination:
    """Parse a destination. ``topic_exchange`` is the name of the exchange of ``/topic``.

    A name without any slash is a queue's. :raises StompError: when the destination is invalid.
    """
    if not written:
        raise StompError("Invalid destination", "Destination cannot be blank")
    if "/" not in written:
        return Destination(DestinationKind.QUEUE, _name(written), "", written)
    for kind in DestinationKind:
        if written.startswith(f"{kind.value}/"):
            rest = written.removeprefix(f"{kind.value}/")
            if kind is DestinationKind.EXCHANGE:
                return _exchange(written, rest)
            if not rest or ("/" in rest and kind is not DestinationKind.REPLY_QUEUE):
                raise _invalid(kind, f"/{rest}")
            name = _bounded(rest) if kind is DestinationKind.REPLY_QUEUE else _name(rest)
            return Destination(kind, name, topic_exchange if kind is DestinationKind.TOPIC else "", written)
        if written == kind.value and kind is not DestinationKind.REPLY_QUEUE:
            raise _invalid(kind, "")
    detail = f"'{written[:200]}' is not a valid destination.\nValid destination types are: {_PREFIXES}.\n"
    raise StompError("Unknown destination", detail)


def _exchange(written: str, rest: str) -> Destination:
    """Parse an exchange and an optional routing key after a slash; the default exchange has no name here."""
    exchange, _, key = rest.partition("/")
    if not exchange or "/" in key:
        raise _invalid(DestinationKind.EXCHANGE, f"/{rest}")
    return Destination(DestinationKind.EXCHANGE, _name(key), _name(exchange), written)


def _name(part: str) -> str:
    """Return the unescaped part of a destination; only slashes are escaped in input, as with RabbitMQ."""
    return _bounded(part.replace("%2F", "/"))


def _bounded(name: str) -> str:
    """Return the name. :raises StompError: when it is longer than a short string of AMQP."""
    size = len(name.encode())
    if size > LONGEST_NAME:
        raise StompError("Invalid destination", f"A name or routing key of {size} bytes; the limit is {LONGEST_NAME}\n")
    return name


def _invalid(kind: DestinationKind, rest: str) -> StompError:
    word = kind.value.removeprefix("/").replace("/", "").replace("-", "_")
    return StompError("Invalid destination", f"'{rest[:200]}' is not a valid {word} destination\n")


def shown(exchange: str, routing_key: str, topic_exchange: str) -> str:
    """Return the destination header of a message for a consumer."""
    if not exchange:
        return f"/queue/{_escaped(routing_key)}"
    if exchange == topic_exchange:
        return f"/topic/{_escaped(routing_key)}"
    return f"/exchange/{_escaped(exchange)}" + (f"/{_escaped(routing_key)}" if routing_key else "")


def _escaped(part: str) -> str:
    """Escape slashes, percent signs and everything except printable ASCII."""
    if part.isascii() and part.isprintable() and not ("/" in part or "%" in part):
        return part
    return "".join(
        f"%{octet:02X}" if octet in b"/%" or octet < 32 or octet > 127 else chr(octet) for octet in part.encode()
    )


def with_wildcards(destination: Destination) -> Destination:
    """Translate a topic from ActiveMQ's syntax: ``>`` at the end stands for any number of words."""
    words = destination.name.split(".")
    if destination.kind is not DestinationKind.TOPIC or words[-1] != ">":
        return destination
    name = ".".join([*words[:-1], "#"])
    return Destination(DestinationKind.TOPIC, name, destination.exchange, destination.written)
