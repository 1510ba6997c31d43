"""MQTT as a node serves it: the settings of its listeners, and the bounds of sessions and retained messages."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Final

from gateway.access import Access
from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.kernel.messages.message import Arguments, HeaderFormat
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog
from gateway.net import websocket
from gateway.net.turn_watch import TurnWatch
from gateway.node.protocols.served import ServedProtocol, Services
from gateway.version import VERSION
from gateway_mqtt import not_ready
from gateway_mqtt.handshake.login import LoginRules
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.resuming.relayed_session import RelayedSession
from gateway_mqtt.server import MqttFactory
from gateway_mqtt.sys_topics import SysTopics
from gateway_mqtt.topics_change import TopicsChange
from gateway_mqtt.translation.header import MQTT
from gateway_mqtt.translation.topics import TopicBounds

_log: Final = StructuredLog("mqtt")

#: Limits with the same name in the settings and in ``MqttContext``.
LIVE_LIMITS: Final = (
    "prefetch",
    "max_packet_size_unauthenticated",
    "max_packet_size",
    "max_session_expiry_s",
    "keep_alive_max_s",
    "topic_alias_max",
    "receive_maximum",
    "login_timeout_s",
    "disconnect_on_unauthorized",
    "max_subscriptions",
    "max_filters",
    "max_inflight",
)


class MqttProtocol(ServedProtocol):
    """MQTT 3.1, 3.1.1 and 5.0: all listeners share one factory. ``context`` is what its connections share."""

    name: ClassVar[str] = "mqtt"
    format: ClassVar[HeaderFormat] = MQTT
    dialect: ClassVar[websocket.Dialect | None] = websocket.MQTT

    def __init__(self, services: Services, settings: Settings) -> None:
        super().__init__(services, settings)
        self.context = mqtt_context(settings, services.broker, services.access_of)
        self._factory = MqttFactory(self.context, services.turn)
        self._topics_change = TopicsChange(self.context)

    @staticmethod
    def refusal(data: bytes, reason: str) -> bytes | None:
        """See ``ServedProtocol``."""
        return not_ready.refusal(data, reason)

    @staticmethod
    def resumable(settings: Settings) -> RelayedSession:
        """See ``ServedProtocol``."""
        return RelayedSession(settings.mqtt.max_packet_size_unauthenticated, settings.mqtt.vhost)

    def factory(self, *, is_tls: bool) -> Any:
        """See ``ServedProtocol``."""
        return self._factory

    def apply(self, settings: Settings) -> None:
        """See ``ServedProtocol``."""
        super().apply(settings)
        self._factory.settings = replace(self.context, **_live_limits(settings))
        for vhost in self.services.broker.vhost_by_name.values():
            self.vhost_added(vhost)

    def start_topics(self) -> None:
        """Put the topic rules of the stored parameters in force, before clients connect."""
        self._topics_change.start()

    def vhost_added(self, vhost: VirtualHost) -> None:
        """Limit the memory of a virtual host's sessions and retained messages."""
        mqtt = self.settings.mqtt
        vhost.sessions.limits = {
            0: _limit(mqtt.qos0_max_messages, mqtt.qos0_max_bytes),
            1: _limit(mqtt.session_max_messages, mqtt.session_max_bytes),
        }
        vhost.sessions.max_per_user = mqtt.max_sessions_per_user
        vhost.retained.max_messages = mqtt.retained_max_messages
        vhost.retained.max_bytes = mqtt.retained_max_bytes

    def sys_topics(self, watch: TurnWatch, memory_used: Callable[[], int]) -> SysTopics:
        """Return the publisher of ``$SYS``: the node, the traffic of all MQTT listeners, the turns of the loop."""
        version, context = f"gateway version {VERSION}", self.context
        return SysTopics(context.broker, context.meter, context.exchange, version, memory_used, watch.shown)


def mqtt_context(settings: Settings, broker: Broker, access_of: Callable[[str], Access]) -> MqttContext:
    """Return the context shared by all MQTT listeners of a node."""
    mqtt = settings.mqtt
    login = LoginRules(
        broker,
        access_of,
        default_vhost=mqtt.vhost,
        anonymous_user=mqtt.anonymous_user,
        anonymous_from_network=mqtt.anonymous_from_network,
        anonymous_from_pages=mqtt.anonymous_from_pages,
        refusal_delay_s=mqtt.failed_login_delay_s,
    )
    return MqttContext(
        broker,
        login,
        access_of,
        token=lambda: secrets.token_urlsafe(16),
        exchange=mqtt.exchange,
        lossy_vhosts=frozenset(name for name, vhost in settings.vhosts.items() if vhost.mqtt_mapping == "lossy"),
        **_live_limits(settings),
    )


def _live_limits(settings: Settings) -> dict[str, Any]:
    """Return the connection limits that a reload may change: fields of ``MqttContext`` and their values."""
    mqtt = settings.mqtt
    return {**{name: getattr(mqtt, name) for name in LIVE_LIMITS}, "topics": TopicBounds(mqtt.max_topic_levels)}


def warn_of_anonymous(settings: Settings) -> None:
    """Log a warning if anonymous clients may log in through a proxy on this machine."""
    proxied = [
        f"{name}.proxy_protocol"
        for name, is_proxied in (
            ("mqtt", settings.mqtt.proxy_protocol),
            ("web_mqtt", settings.web_mqtt.proxy_protocol),
        )
        if is_proxied
    ]
    if settings.mqtt.anonymous_user and proxied:
        _log.warning(
            "anonymous clients are accepted behind a proxy",
            user=settings.mqtt.anonymous_user,
            proxied=", ".join(proxied),
            advice='clients of a local proxy count as local; mqtt.anonymous_user = "" refuses anonymous clients',
        )


def _limit(messages: int, size: int) -> Arguments:
    """Return the arguments of a queue that keeps its newest messages up to these limits; 0 means no limit."""
    limits = {"x-max-length": messages, "x-max-length-bytes": size}
    return {"x-queue-type": "classic", **{name: limit for name, limit in limits.items() if limit}}
