"""The parts of a connection with an open virtual host, and the order in which they are closed."""

from gateway.kernel.broker.connections import ChannelInfo, PeerLoad
from gateway_stomp.endpoints import Endpoints
from gateway_stomp.publishing import Publishing
from gateway_stomp.replies import ReplyQueues
from gateway_stomp.scope import Scope
from gateway_stomp.settling import Settling
from gateway_stomp.subscribing import Subscribing
from gateway_stomp.transactions import Transactions


class Conversation:
    """Owns the parts of one open connection. ``has_left`` is set once it accepts no more frames."""

    __slots__ = ("_is_over", "has_left", "publishing", "scope", "settling", "subscribing", "transactions")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        endpoints = Endpoints(scope)
        self.subscribing = Subscribing(scope, endpoints)
        self.publishing = Publishing(scope, endpoints, ReplyQueues(scope, endpoints, self.subscribing))
        self.settling = Settling(scope, self.subscribing)
        self.transactions = Transactions(scope.host, scope.settings, self.publishing, self.settling)
        self._is_over = False
        self.has_left = False

    def leave(self) -> None:
        """Accept no more frames: drop transactions, and requeue unsettled deliveries. Receipts are still sent."""
        self.has_left = True
        self.transactions.abandon()
        self.subscribing.close()

    def close(self) -> None:
        """Close all parts, and delete the client's own queues. Harmless when repeated."""
        if self._is_over:
            return
        self._is_over = True
        self.drain()
        self.leave()
        self.publishing.close()
        self.scope.vhost.release(self.scope.host)

    def drain(self) -> None:
        """Add what was counted since the last call to the totals of the virtual host."""
        scope = self.scope
        scope.channel_counters.drain(scope.origin.protocol, scope.vhost.traffic)
        self.publishing.drain()

    def load(self) -> PeerLoad:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        self.drain()
        has_published = self.scope.channel_counters.has_published
        return PeerLoad(self.scope.origin.protocol, int(has_published), len(self.subscribing.consumers))

    def info(self) -> ChannelInfo:
        """Return the connection's only channel for listings."""
        channel_counters, publishing = self.scope.channel_counters, self.publishing
        if not self.subscribing.unsettled:
            channel_counters.forget_deleted()
        published = channel_counters.published()
        messages, settlements = self.transactions.held
        return ChannelInfo(
            number=1,
            consumers=self.subscribing.consumers,
            unacknowledged=self.subscribing.unsettled,
            unconfirmed=publishing.unanswered,
            uncommitted=messages,
            acks_uncommitted=settlements,
            totals=channel_counters.totals,
            confirmed=publishing.confirmed,
            unroutable=published.drop_unroutable,
            publishes=channel_counters.by_exchange,
            deliveries=channel_counters.by_queue,
        )
