"""Many messages published as one: in one turn, so that a crash leaves all of them or none, and only if all can go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Message
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import Verdict, VirtualHost

if TYPE_CHECKING:
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.routing.exchange import Route


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a batch: how many messages queues took, had no queue, or were refused by one that is full."""

    taken: int
    unrouted: int
    refused: int


def publish_batch(
    vhost: VirtualHost,
    messages: Sequence[tuple[Exchange, Message]],
    *,
    may_drop: bool = False,
    instead: Exchange | None = None,
    origin: "Origin | None" = None,
) -> Published:
    """Publish messages in order, in this turn. Call it once everything that could be wrong with them was looked at.

    Those that reach no queue go to the exchange ``instead``, or nowhere if they ``may_drop``.

    :raises PreconditionFailed: for the first of them that may not; nothing was published then.
    """
    ways = [_way(vhost, exchange, message, may_drop, instead) for exchange, message in messages]
    counts = dict.fromkeys(Verdict, 0)
    for (_, message), way in zip(messages, ways, strict=True):
        counts[vhost.publish_along(way, message, origin)] += 1
    return Published(counts[Verdict.TAKEN], counts[Verdict.UNROUTED], counts[Verdict.REFUSED])


def _way(vhost: VirtualHost, exchange: Exchange, message: Message, may_drop: bool, instead: Exchange | None) -> "Route":
    way = vhost.way_of(exchange, message)
    if way.queues:
        return way
    if instead is not None:
        way = vhost.way_of(instead, message)
    if not way.queues and not may_drop:
        raise PreconditionFailed(
            f"a message to exchange '{exchange.name}' with routing key '{message.routing_key}' reaches no queue"
        )
    return way
