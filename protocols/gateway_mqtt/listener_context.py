"""What the composition root gives to the MQTT side of the gateway."""

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
    """Settings of a listener. ``lossy_vhosts`` map topics as RabbitMQ does.

    Sizes are in bytes, ``token`` makes the identifier of a client that brings none. ``prefetch`` is how many
    deliveries a client may leave unacknowledged, at most its own Receive Maximum; one that says more than
    ``max_inflight`` gets that many. ``max_subscriptions`` is for one session, ``max_filters`` for one request.
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
        """Return how topics become routing keys in a virtual host."""
        return LOSSY if vhost in self.lossy_vhosts else REVERSIBLE


class Encoders:
    """The encoders of a process: one for each version and mapping, so that all clients of both share encodings."""

    def __init__(self) -> None:
        self._encoders: Mapping[tuple[bool, TopicMapping], Encoder] = {
            (is_v5, mapping): Encoder(is_v5, mapping) for is_v5 in (False, True) for mapping in (REVERSIBLE, LOSSY)
        }

    def of(self, version: int, mapping: TopicMapping) -> Encoder:
        """Return the encoder for clients of a version in virtual hosts of a mapping."""
        return self._encoders[version == 5, mapping]
