"""Settings and dependencies shared by the connections of one AMQP listener."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.access import Access
from gateway.kernel.broker.broker import Broker
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.ack_timeout import CONSUMER_TIMEOUT_MS
from gateway_amqp.methods import encode_method
from gateway_amqp.tuning import start


@dataclass(frozen=True, slots=True)
class AmqpContext:
    """Limits and dependencies shared by the connections of a listener.

    ``login`` authenticates before the virtual host is known, ``access_of`` returns the access to one virtual host. With
    ``may_authenticate_in_vhost``, a user unknown to ``login`` may still be authenticated by plugins of the virtual
    host. Sizes are in bytes. ``token`` returns unique names. ``consumer_timeout_ms`` applies to queues without a limit
    of their own; 0 is no limit. ``greeting`` is the encoded ``connection.start``.
    """

    broker: Broker
    login: Access
    access_of: Callable[[str], Access]
    token: Callable[[], str]
    may_authenticate_in_vhost: Callable[[], bool] = lambda: False
    server_properties: Mapping[str, Value] = field(default_factory=dict)
    mechanisms: str = "PLAIN AMQPLAIN"
    heartbeat_s: int = 60
    frame_max: int = 131_072
    channel_max: int = 2047
    max_message_size: int = 16 * 1024 * 1024
    max_held_size: int = 128 * 1024 * 1024
    max_unsettled_size: int = 256 * 1024 * 1024
    consumer_timeout_ms: int = CONSUMER_TIMEOUT_MS
    login_timeout_s: float = 10.0
    greeting: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Encode ``connection.start``, which is the same for each connection."""
        object.__setattr__(self, "greeting", encode_method(0, start(self.server_properties, self.mechanisms)))
