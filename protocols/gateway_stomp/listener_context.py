"""Settings and dependencies shared by the connections of one STOMP listener."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.access import Access
from gateway.kernel.broker.broker import Broker
from gateway.kernel.queueing.ack_timeout import CONSUMER_TIMEOUT_MS
from gateway_stomp.encoder import Encoders


@dataclass(frozen=True, slots=True)
class StompContext:
    """Settings and dependencies of a listener. Sizes are in bytes, ``token`` returns unique names.

    ``access_of`` returns the access to one virtual host; ``login`` authenticates users of a virtual host that does not
    exist. ``max_transaction_size`` limits all open transactions of a connection together. ``default_user`` applies to
    clients without a name, empty for none; with ``implicit_connect`` it needs no CONNECT. ``certificate_login`` allows
    a login by certificate alone. ``activemq`` enables the extensions of ActiveMQ's clients.
    """

    broker: Broker
    access_of: Callable[[str], Access]
    login: Access
    token: Callable[[], str]
    server: str = "gateway"
    vhost: str = "/"
    default_user: str = ""
    default_passcode: str = field(default="", repr=False)
    implicit_connect: bool = False
    certificate_login: bool = True
    topic_exchange: str = "amq.topic"
    nack_requeues: bool = True
    max_frame_size_unauthenticated: int = 64 * 1024
    max_frame_size: int = 17 * 2**20
    max_body_size: int = 16 * 2**20
    max_headers: int = 100
    max_headers_size: int = 64 * 1024
    max_header_size: int = 64 * 1024
    max_transactions: int = 16
    max_transaction_actions: int = 1024
    max_transaction_size: int = 64 * 2**20
    login_timeout_s: int = 10
    consumer_timeout_ms: int = CONSUMER_TIMEOUT_MS
    activemq: bool = False
    encoders: Encoders = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoders", Encoders(self.topic_exchange))
