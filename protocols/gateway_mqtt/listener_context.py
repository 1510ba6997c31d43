"""Settings and services that the composition root passes to an MQTT listener."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gateway.access import Access
from gateway.kernel.broker.broker import Broker
from gateway.kernel.caches import remember
from gateway_mqtt.codec.decoding import MAX_FILTERS
from gateway_mqtt.handshake.login import LoginRules
from gateway_mqtt.meter import Meter
from gateway_mqtt.topic_rules import VhostTopics
from gateway_mqtt.traffic.encoder import Encoder
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE, TopicBounds, TopicMapping

#: The limit of shared encoders; the cache is cleared when it is full.
_MOST_ENCODERS: Final = 64


@dataclass(frozen=True, slots=True)
class MqttContext:
    """Settings of a listener. ``lossy_vhosts`` are the virtual hosts with RabbitMQ's topic mapping.

    ``rules_by_vhost`` are the topic rules in force where they are not those of the configuration.
    Sizes are in bytes. ``token`` generates the identifier of a client without one. ``prefetch`` is the default Receive
    Maximum of a client, and ``max_inflight`` the upper limit of its own. ``max_subscriptions`` is per session,
    ``max_filters`` per request.
    """

    broker: Broker
    login: LoginRules
    access_of: Callable[[str], Access]
    token: Callable[[], str]
    exchange: str = "amq.topic"
    prefetch: int = 10
    max_packet_size_unauthenticated: int = 64 * 1024
    max_packet_size: int = 16 * 2**20
    max_session_expiry_s: int = 86_400
    keep_alive_max_s: int = 0
    topic_alias_max: int = 16
    receive_maximum: int = 65_535
    login_timeout_s: int = 10
    disconnect_on_unauthorized: bool = True
    lossy_vhosts: frozenset[str] = frozenset()
    max_subscriptions: int = 10_000
    max_filters: int = MAX_FILTERS
    max_inflight: int = 8192
    topics: TopicBounds = field(default_factory=TopicBounds)
    meter: Meter = field(default_factory=Meter)
    rules_by_vhost: dict[str, VhostTopics] = field(default_factory=dict)
    encoders: "Encoders" = field(default_factory=lambda: Encoders())

    def topics_in(self, vhost: str) -> VhostTopics:
        """Return the topic rules in force in a virtual host."""
        return self.rules_by_vhost.get(vhost) or self.configured_rules(vhost)

    def configured_rules(self, vhost: str) -> VhostTopics:
        """Return the topic rules of the configuration."""
        return VhostTopics(LOSSY if vhost in self.lossy_vhosts else REVERSIBLE, self.exchange)

    def mapping_of(self, vhost: str) -> TopicMapping:
        """Return the mapping of topics to routing keys in a virtual host."""
        return self.topics_in(vhost).mapping

    def exchange_of(self, vhost: str) -> str:
        """Return the exchange of MQTT messages in a virtual host."""
        return self.topics_in(vhost).exchange


class Encoders:
    """The encoders of a process: one per version and mapping, so that clients share encoded packets."""

    def __init__(self) -> None:
        self._encoders: dict[tuple[bool, TopicMapping], Encoder] = {}

    def of(self, version: int, mapping: TopicMapping) -> Encoder:
        """Return the encoder for a protocol version and a topic mapping."""
        key = version == 5, mapping
        encoder = self._encoders.get(key)
        if encoder is None:
            encoder = Encoder(*key)
            remember(self._encoders, key, encoder, _MOST_ENCODERS)
        return encoder
