"""The change of the topic rules of a virtual host while it runs: subscriptions and retained messages move.

First every subscription that outlives its connection is bound by the new rules, too. Then the new rules are in force,
and the clients that use the former ones are disconnected. At last the former bindings are removed.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.clock import drained
from gateway.kernel.errors import PreconditionFailed, Refused
from gateway.kernel.events import Event
from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.sessions.rebinding import Rebinding
from gateway.kernel.sessions.session import SERVER_PREFIX, Session
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.topic_rules import COMPONENT, VhostTopics, rules_of
from gateway_mqtt.translation.topics import parse_filter

CHANGED: Final = "mqtt.topics_changed"
"""The event that reports new rules in force."""

_EVENTS: Final = ("parameter.set", "parameter.cleared")


class TopicsChange:
    """Puts the topic rules of the runtime parameters in force, in ``context.rules_by_vhost``.

    Rules that change again while a change is in progress follow it.
    """

    def __init__(self, context: MqttContext) -> None:
        self._context = context
        self._broker: Broker = context.broker
        self._changing: set[str] = set()
        self._broker.parameters.components[COMPONENT] = self.require_valid
        self._broker.events.subscribe(self._parameter_changed, "parameter", "vhost")

    def start(self) -> None:
        """Put the rules of the stored parameters in force; call once, after recovery and before clients connect.

        A change that was interrupted by a crash is completed.
        """
        for record in self._broker.parameters.values():
            if record.component == COMPONENT and (vhost := self._broker.vhost_by_name.get(record.vhost)) is not None:
                configured, rules = self._context.configured_rules(vhost.name), self._wanted(vhost.name)
                self._context.rules_by_vhost[vhost.name] = rules
                self._broker.clock.background.add(self._completing(_Moves(vhost, configured, rules)))

    def _completing(self, moves: "_Moves") -> Iterator[None]:
        yield from moves.binding()
        yield from moves.unbinding()

    def require_valid(self, record: ParameterRecord) -> None:
        """Validate a parameter. :raises PreconditionFailed: if it is invalid, or its exchange is no topic exchange."""
        rules = rules_of(record, self._context.configured_rules(record.vhost))
        vhost = self._broker.vhost_by_name.get(record.vhost)
        exchange = None if vhost is None else vhost.exchange_by_name.get(rules.exchange)
        if exchange is not None and (exchange.type_name != "topic" or exchange.is_internal):
            kind = "internal" if exchange.is_internal else f"of type '{exchange.type_name}'"
            raise PreconditionFailed(
                f"invalid {COMPONENT}: exchange: '{rules.exchange}' in vhost '{record.vhost}' is {kind}; it must be a "
                f"topic exchange to which clients publish"
            )

    def _parameter_changed(self, event: Event) -> None:
        if event.name == "vhost.deleted":
            self._context.rules_by_vhost.pop(event.vhost, None)
        if event.name not in _EVENTS or event.details.get("component") != COMPONENT:
            return
        vhost = self._broker.vhost_by_name.get(event.vhost)
        if vhost is not None and event.vhost not in self._changing:
            self._changing.add(event.vhost)
            self._broker.clock.background.add(self._changes(vhost))

    def _wanted(self, vhost: str) -> VhostTopics:
        """Return the rules of the present parameter of a virtual host, or of the configuration."""
        configured = self._context.configured_rules(vhost)
        for record in self._broker.parameters.values():
            if record.component == COMPONENT and record.vhost == vhost:
                return rules_of(record, configured)
        return configured

    def _changes(self, vhost: VirtualHost) -> Iterator[None]:
        try:
            while (new := self._wanted(vhost.name)) != (old := self._context.topics_in(vhost.name)):
                yield from self._change(vhost, old, new)
        except Refused as refusal:  # the exchange cannot be declared: the former rules stay
            details = {"reason": str(refusal)}
            self._broker.events.emit(Event("mqtt.topics_not_changed", vhost.name, COMPONENT, details))
        finally:
            self._changing.discard(vhost.name)

    def _change(self, vhost: VirtualHost, old: VhostTopics, new: VhostTopics) -> Iterator[None]:
        """Return the steps of one change."""
        if new.exchange not in vhost.exchange_by_name:
            vhost.declare_exchange(new.exchange, "topic", is_durable=True)
        moves = _Moves(vhost, old, new)
        yield from moves.binding()
        newest = vhost.retained.newest
        self._context.rules_by_vhost[vhost.name] = new
        vhost.invalidate_caches()
        yield from moves.disconnecting()
        yield from moves.binding()  # subscriptions that were made meanwhile
        yield from moves.moving_retained(newest)
        yield from moves.unbinding()
        self._broker.events.emit(Event(CHANGED, vhost.name, COMPONENT, {"exchange": new.exchange}))


class _Moves:
    """The subscriptions and retained messages of a virtual host, on their way from the old rules to the new ones."""

    def __init__(self, vhost: VirtualHost, old: VhostTopics, new: VhostTopics) -> None:
        self._vhost = vhost
        self._old = old
        self._new = new
        self._rebinding = Rebinding(vhost, vhost.sessions.groups)

    def binding(self) -> Iterator[None]:
        """Bind the subscriptions that outlive their connection by the new rules, if they are not."""
        exchange = self._vhost.exchange_by_name.get(self._new.exchange)
        if exchange is None:
            return
        for session in drained(list(self._vhost.sessions)):
            if session.expiry_s and self._vhost.sessions.get(session.client_id) is session:
                for subscription in session.subscribed:
                    self._bind(session, subscription, exchange)
                    yield
            yield

    def _bind(self, session: Session, earlier: SubscriptionRecord, exchange: Exchange) -> None:
        if session.subscriptions.get(earlier.filter) is not earlier:
            return
        _, filter = parse_filter(earlier.filter)
        key = self._new.mapping.binding_key(filter)
        if earlier.binding_key != key or not self._is_bound(session, earlier, exchange):
            self._rebinding.bind(session, earlier, replace(earlier, binding_key=key), exchange)

    def _is_bound(self, session: Session, subscription: SubscriptionRecord, exchange: Exchange) -> bool:
        queue = self._vhost.queue_by_name.get(session.queue_name(subscription))
        key = subscription.binding_key
        return key.startswith(SERVER_PREFIX) or (
            queue is not None and self._vhost.bindings.find(exchange, queue, key, {}) is not None
        )

    def disconnecting(self) -> Iterator[None]:
        """Disconnect the clients that are connected now; a session without expiry ends."""
        reason = f"the topics of vhost '{self._vhost.name}' are mapped anew: connect again"
        for session in drained([session for session in self._vhost.sessions if session.holder is not None]):
            if session.holder is not None:
                session.holder.force_close(reason)
            yield

    def moving_retained(self, newest: int) -> Iterator[None]:
        """Move the retained messages up to the number ``newest`` to their new keys."""
        kept = [each for each in self._vhost.retained if each.number <= newest and not each.is_transient]
        yield
        for each in drained(kept):
            key = each.message.routing_key
            if self._vhost.retained.get(key) is each:
                new_key = self._new.mapping.routing_key(self._old.mapping.topic(key))
                self._vhost.retained.move(each, self._new.exchange, new_key)
            yield

    def unbinding(self) -> Iterator[None]:
        """Remove the bindings of the old rules."""
        return self._rebinding.unbinding(self._vhost.exchange_by_name.get(self._old.exchange))
