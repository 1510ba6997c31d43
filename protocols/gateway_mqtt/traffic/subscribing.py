"""Handling of SUBSCRIBE and UNSUBSCRIBE (MQTT 5.0, 3.8 to 3.11)."""

from collections.abc import Callable, Iterator
from functools import partial

from gateway.access import Operation, PermissionUnknown
from gateway.kernel.errors import NotAllowed, Refused
from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.queueing.queue_like import QueueLike
from gateway_mqtt.codec.encoding import suback, unsuback
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packets import Subscribe, SubscriptionRequest, Unsubscribe
from gateway_mqtt.codec.properties import Properties, PropertyId
from gateway_mqtt.codec.reasons import ReasonCode, reason_for
from gateway_mqtt.scope import Scope
from gateway_mqtt.traffic.delivering import Delivering
from gateway_mqtt.traffic.retained_feed import RetainedFeed
from gateway_mqtt.translation.topics import parse_filter

_GRANTED = (ReasonCode.SUCCESS, ReasonCode.GRANTED_QOS_1, ReasonCode.GRANTED_QOS_2)

#: Retain handling: send retained messages always, only for a new subscription, or never (3.8.3.1).
_RETAINED_ALWAYS = 0
_RETAINED_IF_NEW = 1

#: The number of refusals of one request that the reason string explains.
_MAX_EXPLAINED = 3


class Subscribing:
    """Changes the subscriptions of one session, within its permissions and limits.

    A request is a task: it yields after each filter, so that thousands of filters do not block the event loop.
    """

    def __init__(self, scope: Scope, delivering: Delivering, feed: RetainedFeed) -> None:
        self._scope = scope
        self._session = scope.session
        self._delivering = delivering
        self._feed = feed

    def await_permissions(self, packet: Subscribe) -> None:
        """Ask for all permissions of a request before it has any effect, where other servers are asked for them.

        :raises PermissionUnknown: while an answer is awaited; refusals are left to ``subscribe``.
        """
        unknown: PermissionUnknown | None = None
        for request in packet.filters:
            try:
                if not self._scope.permissions.asks_elsewhere:
                    return
                self._require_access(self._record(request, 0))
            except PermissionUnknown as one:
                unknown = one
            except (MqttError, Refused):
                continue
        if unknown is not None:
            raise unknown

    def subscribe(self, packet: Subscribe) -> Iterator[None]:
        """Subscribe to each filter, then send retained messages. The answer waits until the subscriptions are durable.

        :raises MqttError: if the answer is too large for the client.
        """
        self._require_room(suback, len(packet.filters))
        identifiers = packet.properties.get(PropertyId.SUBSCRIPTION_IDENTIFIER, [0])
        reasons: list[ReasonCode] = []
        refusals: list[str] = []
        taken: list[tuple[SubscriptionRecord, QueueLike, bool]] = []
        for request in packet.filters:
            try:
                taken.append(self._subscribe(request, identifiers[0]))
                reasons.append(_GRANTED[request.qos])
            except MqttError as error:
                if error.reason is not ReasonCode.TOPIC_FILTER_INVALID or self._scope.version < 4:
                    raise
                reasons.append(error.reason)
                refusals.append(str(error))
            except Refused as refusal:
                reasons.append(reason_for(refusal))
                refusals.append(str(refusal))
            yield
        self._promise()
        self._answer(refusals, partial(suback, self._scope.version, packet.packet_id, reasons))
        for queue, subscription in {queue: subscription for subscription, queue, _ in taken[::-1]}.items():
            self._delivering.start_consuming(queue, subscription)
            yield
        for subscription, _, sends_retained in taken:
            if sends_retained:
                self._feed.serve(subscription)
            yield
        self._feed.resume()

    def unsubscribe(self, packet: Unsubscribe) -> Iterator[None]:
        """Unsubscribe from each filter. :raises MqttError: if the answer is too large for the client."""
        self._require_room(unsuback, len(packet.filters))
        refusals: list[str] = []
        reasons: list[ReasonCode] = []
        for filter in packet.filters:
            reasons.append(self._unsubscribe(filter, refusals))
            yield
        self._promise()
        self._answer(refusals, partial(unsuback, self._scope.version, packet.packet_id, reasons))

    def _require_room(self, write: Callable[[int, int, list[ReasonCode]], bytes], count: int) -> None:
        """Refuse a request whose answer exceeds the client's Maximum Packet Size (MQTT-3.1.2-24)."""
        scope = self._scope
        size, most = len(write(scope.version, 1, [ReasonCode.SUCCESS] * count)), scope.host.max_packet_size
        if size > most:
            text = f"the answer to {count} filters has {size} bytes; the client's Maximum Packet Size is {most}"
            raise MqttError(ReasonCode.PACKET_TOO_LARGE, text)

    def _answer(self, refusals: list[str], write: Callable[[Properties], bytes]) -> None:
        """Send the packet that ``write`` builds, with the reasons of the refusals."""
        scope = self._scope
        text = "; ".join(refusals[:_MAX_EXPLAINED])
        scope.outbox.write(scope.host.with_reason_string(text, write) if refusals else write({}))

    def _subscribe(self, request: SubscriptionRequest, identifier: int) -> tuple[SubscriptionRecord, QueueLike, bool]:
        """Return the subscription, its queue, and whether to send retained messages."""
        scope = self._scope
        subscription = self._record(request, identifier)
        self._require_access(subscription)
        earlier = self._session.subscriptions.get(request.filter)
        if earlier is None and len(self._session.subscriptions) >= scope.settings.max_subscriptions:
            text = f"the session has {scope.settings.max_subscriptions} subscriptions, the limit of max_subscriptions"
            raise NotAllowed(text)
        queue = self._session.subscribe(scope.exchange, subscription)
        if subscription.group:
            scope.vhost.sessions.groups.joined(self._session, subscription)
            if earlier is not None:
                self._delivering.stop_consuming(queue)  # the terms may have changed
        wants = request.retain_handling == _RETAINED_ALWAYS
        wants = wants or (request.retain_handling == _RETAINED_IF_NEW and earlier is None)
        return subscription, queue, wants and not subscription.group  # none for shared subscriptions (4.8.2)

    def _record(self, request: SubscriptionRequest, identifier: int) -> SubscriptionRecord:
        """Return the subscription that a client requests. :raises MqttError: if its filter is invalid."""
        scope = self._scope
        shared, filter = parse_filter(request.filter)
        binding_key = scope.mapping.binding_key(filter)
        if objection := scope.settings.topics.objection(filter, binding_key):
            raise MqttError(ReasonCode.TOPIC_FILTER_INVALID, objection)
        return SubscriptionRecord(
            scope.vhost.name,
            scope.client_id,
            request.filter,
            "" if shared is None else shared.group,
            binding_key,
            request.qos,
            identifier,
            request.no_local,
            request.retain_as_published,
        )

    def _require_access(self, subscription: SubscriptionRecord) -> None:
        """Check RabbitMQ's permissions: configure, write and read on the queue, read on the exchange and the topic."""
        scope, permissions = self._scope, self._scope.permissions
        name = self._session.queue_name(subscription)
        for operation in (Operation.CONFIGURE, Operation.WRITE, Operation.READ):
            permissions.require(operation, "queue", name)
        permissions.require(Operation.READ, "exchange", scope.exchange_name)
        if permissions.restricts_topics:
            permissions.require_topic(
                Operation.READ, scope.exchange_name, subscription.binding_key, scope.topic_variables
            )

    def _unsubscribe(self, filter: str, refusals: list[str]) -> ReasonCode:
        try:
            parse_filter(filter)
        except MqttError as error:
            refusals.append(str(error))
            return error.reason
        subscription = self._session.unsubscribe(self._scope.exchange, filter)
        if subscription is None:
            return ReasonCode.NO_SUBSCRIPTION_EXISTED
        if subscription.group:
            queue = self._scope.vhost.queue_by_name.get(self._session.queue_name(subscription))
            if queue is not None:
                self._delivering.stop_consuming(queue)
            self._scope.vhost.sessions.groups.left(self._session, subscription)
        return ReasonCode.SUCCESS

    def _promise(self) -> None:
        if self._session.is_durable:
            self._scope.outbox.promise(self._scope.journal.pending_lsn)
