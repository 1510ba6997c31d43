"""The targets of a channel's publishes: exchanges that its user may publish to, and their routing keys."""

from collections.abc import Callable
from typing import Final

from gateway.access import Operation
from gateway.kernel.errors import AccessRefused
from gateway.kernel.queueing.channel_counters import ChannelCounters
from gateway_amqp.publishing import Target, parse_publish
from gateway_amqp.scope import Scope

#: Targets remembered per channel; when there are more, all are dropped.
_TARGETS_KEPT: Final = 4096


class Targets:
    """Resolves the targets of publishes, and checks the permissions for them.

    ``by_method`` has those that were resolved, by the bytes of the method; the channel reads it directly.
    ``on_exchange`` is called when an exchange is resolved: the first time, and after exchanges or permissions changed.
    """

    __slots__ = ("_by_exchange", "_counters", "_on_exchange", "_scope", "by_method")

    def __init__(self, scope: Scope, counters: ChannelCounters, on_exchange: Callable[[], None]) -> None:
        self.by_method: dict[bytes, Target] = {}
        self._by_exchange: dict[str, Target] = {}
        self._scope = scope
        self._counters = counters
        self._on_exchange: Callable[[], None] = on_exchange

    def resolve(self, method: bytes) -> Target:
        """Resolve the target of a publish, and check the permissions."""
        exchange_name, routing_key, is_mandatory = parse_publish(method)
        usual = self._by_exchange.get(exchange_name)
        if usual is None or usual.version != self._scope.vhost.version:
            usual = self._usual_target(exchange_name)
        if usual.exchange.type_name == "topic":
            self._scope.host.identity.permissions.require_topic(Operation.WRITE, exchange_name, routing_key)
        if len(self.by_method) >= _TARGETS_KEPT:
            self._forget()
            self._counters.forget_exchanges()
            usual = self._usual_target(exchange_name)
        target = self.by_method[method] = usual.for_key(routing_key, is_mandatory)
        return target

    def require_topics(self, keys: tuple[str, ...], target: Target) -> None:
        """Require the topic permissions for the keys of ``CC`` and ``BCC`` (R4)."""
        if target.exchange.type_name == "topic":
            for key in keys:
                self._scope.host.identity.permissions.require_topic(Operation.WRITE, target.exchange_name, key)

    def close(self) -> None:
        """Drop all targets and the reference to the channel, so that no reference cycle is left."""
        self._forget()
        self._on_exchange = _ignore

    def _usual_target(self, exchange_name: str) -> Target:
        """Resolve an exchange and check its permissions, for publishes with any key."""
        scope = self._scope
        vhost = scope.vhost
        version = vhost.version
        scope.host.identity.permissions.require(Operation.WRITE, "exchange", exchange_name)
        exchange = vhost.exchange(exchange_name)
        if exchange.is_internal:
            raise AccessRefused(f"cannot publish to internal exchange '{exchange_name}' in vhost '{vhost.name}'")
        exchange.require_working()
        scope.host.publishing()
        tally = self._counters.for_exchange(exchange_name)
        chain = vhost.interception.publishing_to_exchange(exchange_name)
        usual = self._by_exchange[exchange_name] = Target(exchange, "", False, version, tally, chain)
        self._on_exchange()
        return usual

    def _forget(self) -> None:
        self.by_method.clear()
        self._by_exchange.clear()


def _ignore() -> None:
    """Do nothing: the channel is closed."""
