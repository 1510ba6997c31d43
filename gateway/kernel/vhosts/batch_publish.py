"""Atomic publishing of several messages.

All are published in one turn, so that a crash keeps all or none, and only if all are routable.
"""

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
class BatchOutcome:
    """The outcome of a batch: numbers of messages that were enqueued, unroutable, or rejected by a full queue."""

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
) -> BatchOutcome:
    """Publish messages in order, in this turn; the caller has validated them.

    Unroutable messages go to the exchange ``instead``; they are dropped only if ``may_drop``.

    :raises PreconditionFailed: when a message is unroutable and may not be dropped; nothing was published then.
    """
    ways = [_way(vhost, exchange, message, may_drop, instead) for exchange, message in messages]
    counts = dict.fromkeys(Verdict, 0)
    for (_, message), way in zip(messages, ways, strict=True):
        counts[vhost.publish_to_route(way, message, origin)] += 1
    return BatchOutcome(counts[Verdict.TAKEN], counts[Verdict.UNROUTED], counts[Verdict.REFUSED])


def _way(vhost: VirtualHost, exchange: Exchange, message: Message, may_drop: bool, instead: Exchange | None) -> "Route":
    way = vhost.route_of(exchange, message)
    if way.queues:
        return way
    if instead is not None:
        way = vhost.route_of(instead, message)
    if not way.queues and not may_drop:
        raise PreconditionFailed(
            f"a message to exchange '{exchange.name}' with routing key '{message.routing_key}' reaches no queue"
        )
    return way
