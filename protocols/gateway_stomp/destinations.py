"""Destinations: how a place is written in STOMP, and the exchange and routing key it stands for."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway_stomp.errors import StompError


class DestinationKind(Enum):
    """What a destination is, by its prefix."""

    QUEUE = "/queue"  # made when somebody sends to it or subscribes
    AMQ_QUEUE = "/amq/queue"  # has to be there
    REPLY_QUEUE = "/reply-queue"  # has to be there; the name may hold slashes
    TEMP_QUEUE = "/temp-queue"  # the client's own, for replies
    TOPIC = "/topic"
    EXCHANGE = "/exchange"


#: The prefixes as RabbitMQ lists them in an ERROR.
_PREFIXES: Final = "/temp-queue, /exchange, /topic, /queue, /amq/queue, /reply-queue/"


@dataclass(frozen=True, slots=True)
class Destination:
    """A place: a queue's name, or an exchange's and a routing key. ``written`` is what the client wrote."""

    kind: DestinationKind
    name: str
    exchange: str
    written: str

    @property
    def is_queue(self) -> bool:
        """Whether messages sent there go to the queue of this name."""
        return self.kind in (DestinationKind.QUEUE, DestinationKind.AMQ_QUEUE, DestinationKind.REPLY_QUEUE)


def parse(written: str, topic_exchange: str) -> Destination:
    """Return the place a client means. ``topic_exchange`` is the name of the exchange of ``/topic``.

    A name without any slash is a queue's. :raises StompError: when it is no destination.
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
    """Read an exchange and, behind another slash, a routing key; the default exchange has no name to be called by."""
    exchange, _, key = rest.partition("/")
    if not exchange or "/" in key:
        raise _invalid(DestinationKind.EXCHANGE, f"/{rest}")
    return Destination(DestinationKind.EXCHANGE, _name(key), _name(exchange), written)


def _name(part: str) -> str:
    """Return a part of a destination as it is meant; nothing but a slash is escaped on the way in, as with RabbitMQ."""
    return _bounded(part.replace("%2F", "/"))


def _bounded(name: str) -> str:
    """Return a name. :raises StompError: when it is longer than AMQP can say."""
    size = len(name.encode())
    if size > LONGEST_NAME:
        raise StompError("Invalid destination", f"A name or routing key of {size} bytes, allowed are {LONGEST_NAME}\n")
    return name


def _invalid(kind: DestinationKind, rest: str) -> StompError:
    word = kind.value.removeprefix("/").replace("/", "").replace("-", "_")
    return StompError("Invalid destination", f"'{rest[:200]}' is not a valid {word} destination\n")


def shown(exchange: str, routing_key: str, topic_exchange: str) -> str:
    """Return the destination a consumer sees of a message."""
    if not exchange:
        return f"/queue/{_escaped(routing_key)}"
    if exchange == topic_exchange:
        return f"/topic/{_escaped(routing_key)}"
    return f"/exchange/{_escaped(exchange)}" + (f"/{_escaped(routing_key)}" if routing_key else "")


def _escaped(part: str) -> str:
    """Return a part of a destination with slashes, percent signs and whatever is not printable ASCII escaped."""
    if part.isascii() and part.isprintable() and not ("/" in part or "%" in part):
        return part
    return "".join(
        f"%{octet:02X}" if octet in b"/%" or octet < 32 or octet > 127 else chr(octet) for octet in part.encode()
    )


def with_wildcards(destination: Destination) -> Destination:
    """Return a topic as ActiveMQ means it: ``>`` at the end stands for any number of words."""
    words = destination.name.split(".")
    if destination.kind is not DestinationKind.TOPIC or words[-1] != ">":
        return destination
    name = ".".join([*words[:-1], "#"])
    return Destination(DestinationKind.TOPIC, name, destination.exchange, destination.written)
