"""The target of publishes: the exchange and the routing key of a topic, or its refusal."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gateway.kernel.interception.interceptor import RefusalCause
from gateway.kernel.routing.exchange import Exchange
from gateway_mqtt.codec.reasons import ReasonCode

#: The reason codes of refusals by interceptors (3.4.2.1).
REFUSAL_REASONS: Final[Mapping[RefusalCause, ReasonCode]] = {
    RefusalCause.POLICY: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    RefusalCause.PAYLOAD: ReasonCode.PAYLOAD_FORMAT_INVALID,
    RefusalCause.LIMIT: ReasonCode.QUOTA_EXCEEDED,
    RefusalCause.ACCESS: ReasonCode.NOT_AUTHORIZED,
}


class TopicRefusal(NamedTuple):
    """The reason why a publish is refused: its code and its text."""

    reason: ReasonCode
    text: str


class Target:
    """A resolved topic: exchange and routing key, or a ``refusal``. Valid while ``version`` is the virtual host's.

    ``is_direct`` means that messages are published as they are: there is neither a refusal nor an interceptor.
    """

    __slots__ = ("exchange", "is_direct", "refusal", "routing_key", "version")

    def __init__(
        self, exchange: Exchange, routing_key: str, refusal: TopicRefusal | None, version: int, is_intercepted: bool
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.refusal = refusal
        self.version = version
        self.is_direct = refusal is None and not is_intercepted
