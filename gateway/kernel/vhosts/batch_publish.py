"""Atomic publishing of several messages.

All are published in one step of the store, so that a crash keeps all or none, and only if all are routable.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gateway.kernel.errors import AccessRefused, PreconditionFailed
from gateway.kernel.messages.message import Message
from gateway.kernel.routing.exchange import Exchange, Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout
from gateway.kernel.vhosts.commit import Commit
from gateway.kernel.vhosts.verdict import Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.origin import Origin

Routed: TypeAlias = tuple[Message, Route]


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of a batch: numbers of messages that were enqueued, unroutable, or rejected by a full queue."""

    taken: int
    unrouted: int
    refused: int


class BatchPublish:
    """Publishes messages in order, in slices; the caller has validated them.

    Unroutable messages go to the exchange ``instead``; they are dropped only if ``may_drop``. Interceptors see messages
    with an ``origin``.
    """

    def __init__(
        self,
        vhost: VirtualHost,
        journal: "Journal",
        *,
        may_drop: bool = False,
        instead: Exchange | None = None,
        origin: "Origin | None" = None,
    ) -> None:
        self._vhost = vhost
        self._journal = journal
        self._may_drop = may_drop
        self._instead = instead
        self._origin = origin
        self._counts = dict.fromkeys(Verdict, 0)

    def steps(self, messages: Sequence[tuple[Exchange, Message]]) -> Generator[None, None, BatchOutcome]:
        """Return the steps, which end in the turn in which the store gets all messages.

        :raises PreconditionFailed: when a message is unroutable and may not be dropped, or an interceptor refuses one;
            nothing was published then.
        """
        routed: list[Routed] = []
        for exchange, published in messages:
            message = self._intercepted(published)
            if message.exchange != published.exchange:
                exchange = self._vhost.exchange(message.exchange)
            route = yield from self._route(exchange, message)
            routed.append((message, route))
            yield
        commit = Commit(
            self._journal, routed, _route_of, self._vhost.walking, self._perform, self._fanout_of, self._offered
        )
        yield from commit.steps()
        counts = self._counts
        return BatchOutcome(counts[Verdict.TAKEN], counts[Verdict.UNROUTED], counts[Verdict.REFUSED])

    def _intercepted(self, message: Message) -> Message:
        if self._origin is None:
            return message
        try:
            return self._vhost.interception.published(message, self._origin)
        except AccessRefused as refusal:
            raise PreconditionFailed(str(refusal)) from None

    def _route(self, exchange: Exchange, message: Message) -> Generator[None, None, Route]:
        route = yield from self._found(exchange, message)
        if route.queues:
            return route
        if self._instead is not None:
            route = yield from self._found(self._instead, message)
        if not route.queues and not self._may_drop:
            raise PreconditionFailed(
                f"a message to exchange '{exchange.name}' with routing key '{message.routing_key}' reaches no queue"
            )
        return route

    def _found(self, exchange: Exchange, message: Message) -> Generator[None, None, Route]:
        found = self._vhost.find_route(exchange, message)
        if isinstance(found, Route):
            return found
        yield from self._vhost.walking(found)
        assert found.route is not None
        return found.route

    # Actions of the commit

    def _perform(self, action: Routed, route: Route | None) -> None:
        message, known = action
        self._counts[self._vhost.publish_to_route(known, message, self._origin)] += 1

    def _fanout_of(self, action: Routed, route: Route) -> SlicedFanout:
        return self._vhost.wide_publishing.fanout_of(route, action[0], self._origin)

    def _offered(self, action: Routed, fanout: SlicedFanout) -> None:
        self._counts[Verdict.REFUSED if fanout.is_refused else Verdict.TAKEN] += 1


def _route_of(action: Routed) -> Route | Walk | None:
    return action[1]
