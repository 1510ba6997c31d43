"""Settings and services that the composition root passes to an MQTT listener."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.access import Access
from gateway.kernel.broker.broker import Broker
from gateway_mqtt.codec.decoding import MAX_FILTERS
from gateway_mqtt.handshake.login import LoginRules
from gateway_mqtt.meter import Meter
from gateway_mqtt.traffic.encoder import Encoder
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE, TopicBounds, TopicMapping


@dataclass(frozen=True, slots=True)
class MqttContext:
    """Settings of a listener. ``lossy_vhosts`` are the virtual hosts with RabbitMQ's topic mapping.

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
    encoders: "Encoders" = field(default_factory=lambda: Encoders())

    def mapping_of(self, vhost: str) -> TopicMapping:
        """Return the mapping of topics to routing keys in a virtual host."""
        return LOSSY if vhost in self.lossy_vhosts else REVERSIBLE


class Encoders:
    """The encoders of a process: one per version and mapping, so that clients share encoded packets."""

    def __init__(self) -> None:
        self._encoders: Mapping[tuple[bool, TopicMapping], Encoder] = {
            (is_v5, mapping): Encoder(is_v5, mapping) for is_v5 in (False, True) for mapping in (REVERSIBLE, LOSSY)
        }

    def of(self, version: int, mapping: TopicMapping) -> Encoder:
        """Return the encoder for a protocol version and a topic mapping."""
        return self._encoders[version == 5, mapping]
