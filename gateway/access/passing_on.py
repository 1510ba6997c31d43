"""What it takes to have messages passed on: to a dead-letter exchange, an alternate one, or a bound one.

Topic permissions restrict the keys a user publishes with. They would be worth nothing if the user could have an
exchange or a queue of its own publish for it, so what passes messages on takes the same permission (R24, R104).
"""

from gateway.access.permissions import Operation, Permissions
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.routing.exchange import Exchange


def require_dead_letters(permissions: Permissions, queue: str, arguments: Arguments, exchange: Exchange | None) -> None:
    """Insist on what a queue's dead-letter exchange takes; ``exchange`` is the one of that name, if it is there.

    :raises AccessRefused: without read on the queue, write on the exchange, or write on the topics of its letters.
    """
    name = arguments.get("x-dead-letter-exchange")
    if not isinstance(name, str):
        return
    permissions.require(Operation.READ, "queue", queue)
    permissions.require(Operation.WRITE, "exchange", name)
    routing_key = arguments.get("x-dead-letter-routing-key")
    if isinstance(routing_key, str):
        if _has_topics(exchange):
            permissions.require_topic(Operation.WRITE, name, routing_key)
    else:
        require_passing_on(permissions, name, exchange)


def require_alternate(permissions: Permissions, name: str, arguments: Arguments, exchange: Exchange | None) -> None:
    """Insist on what an exchange's alternate takes; ``exchange`` is the one of that name, if it is there.

    :raises AccessRefused: without read on the exchange itself, write on its alternate, or write on all its topics.
    """
    alternate = arguments.get("alternate-exchange")
    if isinstance(alternate, str):
        permissions.require(Operation.READ, "exchange", name)
        permissions.require(Operation.WRITE, "exchange", alternate)
        require_passing_on(permissions, alternate, exchange)


def require_passing_on(permissions: Permissions, name: str, exchange: Exchange | None) -> None:
    """Insist that messages of any key may go to an exchange. :raises AccessRefused: where its topics are restricted."""
    if _has_topics(exchange):
        permissions.require_every_topic(Operation.WRITE, name)


def require_sender_topics(permissions: Permissions, exchange: Exchange, message: Message) -> None:
    """Insist on all keys of a message, those in ``CC`` and ``BCC`` too. :raises AccessRefused: if one is missing."""
    if exchange.type_name == "topic" and permissions.restricts_topics:
        for routing_key in (message.routing_key, *message.header.sender_keys):
            permissions.require_topic(Operation.WRITE, exchange.name, routing_key)


def _has_topics(exchange: Exchange | None) -> bool:
    """Return whether keys of the exchange may be restricted; one that is not there yet may become a topic exchange."""
    return exchange is None or exchange.type_name == "topic"
