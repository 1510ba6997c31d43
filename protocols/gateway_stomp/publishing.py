"""Publishing for one client: SEND, and the RECEIPT when the message is stored (1.2, "SEND" and "RECEIPT")."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from gateway.access import Operation
from gateway.kernel.budget import PendingWork
from gateway.kernel.caches import remember
from gateway.kernel.errors import AccessRefused, PreconditionFailed
from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.messages.message import Message
from gateway.kernel.routing.exchange import Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout
from gateway.kernel.vhosts.verdict import REFUSED, TAKEN, UNDECIDED, UNROUTED, Verdict
from gateway_stomp.destinations import Destination, DestinationKind
from gateway_stomp.endpoints import Endpoints
from gateway_stomp.errors import StompError
from gateway_stomp.frames import Head
from gateway_stomp.header import STOMP, StompHeader
from gateway_stomp.replies import ReplyQueues
from gateway_stomp.scope import Scope
from gateway_stomp.target import Target
from gateway_stomp.translate import truth_of

#: Cached targets per connection; when there are more, all are dropped. Bounds the memory for ever new destinations.
_TARGETS_KEPT: Final = 1024


class PreparedSend:
    """A SEND of a transaction, prepared for the commit."""

    __slots__ = ("head", "message", "target")

    def __init__(self, head: Head, target: Target, message: Message) -> None:
        self.head = head
        self.target = target
        self.message = message


class Publishing:
    """Publishes for one client. Owns the cached targets and the outstanding receipts."""

    __slots__ = (
        "_answered",
        "_confirmed",
        "_confirms",
        "_endpoints",
        "_origin",
        "_receipts",
        "_replies",
        "_scope",
        "_targets",
        "_traffic",
        "_vhost",
    )

    def __init__(self, scope: Scope, endpoints: Endpoints, replies: ReplyQueues) -> None:
        self._scope = scope
        self._vhost = scope.vhost
        self._traffic = scope.vhost.traffic.by_protocol[scope.origin.protocol]
        self._origin = scope.origin
        self._endpoints = endpoints
        self._replies = replies
        self._targets: dict[str, Target] = {}
        self._confirms = Confirms(scope.journal, self._answer)
        self._receipts: deque[str] = deque()
        self._answered = 0
        self._confirmed = 0

    @property
    def unanswered(self) -> int:
        """The number of publishes that wait for their receipt."""
        return len(self._receipts)

    @property
    def confirmed(self) -> int:
        """The number of publishes whose receipt was sent."""
        return self._confirmed

    def send(self, head: Head, body: bytes) -> None:
        """Publish the message of a SEND."""
        target = head.target
        if target is None or target.version != self._vhost.version:
            target = self._target(head)
            if target.is_intercepted:
                self._send_intercepted(head, body, target)
                return
        header = head.header or self.header(head)
        target.tally.publish += 1
        message = Message(target.exchange_name, target.routing_key, header, body)
        self._published(head, target, message, self._vhost.publish(target.exchange, message, self._origin))

    def _send_intercepted(self, head: Head, body: bytes, target: Target) -> None:
        prepared = self.prepare(head, body, target)
        target, message = prepared.target, prepared.message
        self._published(head, target, message, self._vhost.publish(target.exchange, message, self._origin))

    def _published(self, head: Head, target: Target, message: Message, verdict: Verdict) -> None:
        if verdict is UNROUTED:
            target.tally.drop_unroutable += 1
        elif verdict is UNDECIDED:
            self._vhost.wide_publishing.when_unrouted(lambda: _count_unroutable(target))
        if head.receipt is not None:
            self._receipts.append(head.receipt)
            self._confirms.published(verdict is not REFUSED, message.id != 0)

    # SENDs of a transaction

    def prepare(self, head: Head, body: bytes, target: Target) -> "PreparedSend":
        """Return a SEND prepared for a commit, with its message as the interceptors return it.

        :raises Refused: if an interceptor refuses it.
        """
        target.tally.publish += 1
        message = Message(target.exchange_name, target.routing_key, head.header or self.header(head), body)
        message = self._vhost.interception.published(message, self._origin)
        if message.exchange != target.exchange_name:
            target = Target(self._vhost.exchange(message.exchange), message.routing_key, target.version, target.tally)
        return PreparedSend(head, target, message)

    def find_route(self, prepared: "PreparedSend") -> Route | Walk:
        """Return the route of its message, or the walk to it."""
        return self._vhost.find_route(prepared.target.exchange, prepared.message)

    def walking(self, walk: Walk) -> Iterator[None]:
        """Return the steps of a walk to a route."""
        return self._vhost.walking(walk)

    def publish_to_route(self, prepared: "PreparedSend", route: Route) -> Verdict:
        """Publish its message in this turn."""
        verdict = self._vhost.publish_to_route(route, prepared.message, self._origin)
        self._published(prepared.head, prepared.target, prepared.message, verdict)
        return verdict

    def fanout_of(self, prepared: "PreparedSend", route: Route) -> SlicedFanout:
        """Return the slices that offer its message to very many queues; call ``offered`` after the last one."""
        return self._vhost.wide_publishing.fanout_of(route, prepared.message, self._origin)

    def offered(self, prepared: "PreparedSend", fanout: SlicedFanout) -> None:
        """Record that all offers of its message were made."""
        verdict = REFUSED if fanout.is_refused else TAKEN
        self._published(prepared.head, prepared.target, prepared.message, verdict)

    def wait_for(self, work: PendingWork) -> None:
        """Hold the receipts of all later SENDs until this work is done."""
        self._confirms.wait_for(work)

    def check(self, head: Head) -> Target:
        """Check that a SEND is valid and allowed; return its target. :raises GatewayError: when it is not."""
        target = head.target
        if target is None or target.version != self._vhost.version:
            target = self._target(head)
        if head.header is None:
            self.header(head)
        return target

    def header(self, head: Head) -> StompHeader:
        """Return the message header of a SEND."""
        headers = head.headers
        if "message-id" in headers:
            raise StompError("Invalid header", "'message-id' is not allowed on 'SEND'.\n")
        if (reply_to := headers.get("reply-to")) is not None:
            headers = {**headers, "reply-to": self._replies.address(reply_to)}
        if "persistent" in headers:
            truth_of(headers, "persistent")
        header = STOMP.sent(headers)
        if not header.is_ordinary:
            self._require_user(header.user_id)
        head.header = header
        return header

    # Turns

    def drain(self) -> None:
        """Add the publishes since the last call that expect a receipt to the totals of the virtual host."""
        self._traffic.expecting_confirms += self._confirms.drain()

    def fail(self) -> None:
        """Refuse every publish that waits for its receipt, because the store has failed."""
        self._confirms.fail()

    def close(self) -> None:
        """Stop sending receipts."""
        self._confirms.abandon()
        self._receipts.clear()

    def _answer(self, number: int, is_multiple: bool, is_accepted: bool) -> None:
        """Write the receipts up to the ``number``-th publish; a refused one gets none, as with RabbitMQ."""
        count = number - self._answered if is_multiple else 1
        for _ in range(count):
            receipt = self._receipts.popleft()
            if is_accepted:
                self._scope.receipt(receipt)
        self._answered = number
        if is_accepted:
            self._confirmed += count
            self._traffic.confirmed += count
        self._scope.host.answered()

    # Targets

    def _target(self, head: Head) -> Target:
        """Return the target of a SEND after a permission check; heads with the same destination share it."""
        written = head.headers.get("destination")
        if written is None:
            raise StompError("Missing destination", "\"SEND\" must include a 'destination' header\n")
        target = self._targets.get(written)
        if target is None or target.version != self._vhost.version:
            target = self._learn(self._scope.destination(written), head)
        if not target.is_intercepted:  # else each SEND comes here again
            head.target = target
        return target

    def _learn(self, destination: Destination, head: Head) -> Target:
        scope = self._scope
        if destination.kind is DestinationKind.TEMP_QUEUE:
            detail = f"'{destination.written}' is not a valid destination for 'SEND'\n"
            raise StompError("Invalid destination", detail)
        version = self._vhost.version
        scope.require(Operation.WRITE, "exchange", destination.exchange)
        self._endpoints.queue_to_send_to(destination, head.headers)
        exchange = self._vhost.exchange(destination.exchange)
        if exchange.is_internal:
            raise AccessRefused(f"cannot publish to internal exchange '{exchange.name}' in vhost '{self._vhost.name}'")
        exchange.require_working()
        scope.require_topic(Operation.WRITE, exchange, destination.name)
        scope.host.publishing()
        tally = scope.channel_counters.for_exchange(exchange.name)
        is_intercepted = self._vhost.interception.publishing_to(exchange.name, destination.name) is not None
        target = Target(exchange, destination.name, version, tally, is_intercepted)
        return remember(self._targets, destination.written, target, _TARGETS_KEPT)

    def _require_user(self, user_id: str | None) -> None:
        principal = self._scope.host.principal
        if user_id not in (None, principal.name) and "impersonator" not in principal.tags:
            raise PreconditionFailed(
                f"user_id property set to '{user_id}' but authenticated user was '{principal.name}'"
            )


def _count_unroutable(target: Target) -> None:
    target.tally.drop_unroutable += 1
