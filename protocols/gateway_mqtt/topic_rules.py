"""The rules that map the topics of a virtual host: mapping, exchange and prefix, by a runtime parameter."""

from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.translation.prefixed_topics import PrefixedTopics
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE, TopicMapping, check_topic

COMPONENT: Final = "mqtt-topics"
"""The component of the runtime parameter."""

NAME: Final = "topics"
"""The only name of such a parameter: there is one in a virtual host."""


class VhostTopics(NamedTuple):
    """The mapping of topics to routing keys, and the exchange that receives publishes and is bound to subscriptions."""

    mapping: TopicMapping = REVERSIBLE
    exchange: str = "amq.topic"


class _Value(BaseModel):
    """The value of the parameter; ``None`` leaves what the configuration has."""

    model_config = ConfigDict(extra="forbid", strict=True)

    mapping: Literal["reversible", "lossy"] | None = None
    exchange: str | None = Field(default=None, min_length=1)
    prefix: str = ""


def rules_of(record: ParameterRecord, configured: VhostTopics) -> VhostTopics:
    """Return the rules that a parameter sets, on top of those of the configuration.

    :raises PreconditionFailed: if its name or its value is invalid, with the key and what it must be.
    """
    if record.name != NAME:
        raise PreconditionFailed(f"component {COMPONENT} has the parameter '{NAME}' only, not '{record.name}'")
    try:
        value = _Value.model_validate(record.value)
    except ValidationError as error:
        reasons = [f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}" for fault in error.errors()]
        keys = ", ".join(_Value.model_fields)
        raise PreconditionFailed(f"invalid {COMPONENT}: {'; '.join(reasons)} (the keys are {keys})") from None
    exchange = configured.exchange if value.exchange is None else value.exchange
    if len(exchange.encode()) > LONGEST_NAME:
        raise PreconditionFailed(f"invalid {COMPONENT}: exchange: must have at most {LONGEST_NAME} bytes")
    mapping = configured.mapping
    if value.mapping is not None:
        mapping = LOSSY if value.mapping == "lossy" else REVERSIBLE
    return VhostTopics(_prefixed(mapping, value.prefix), exchange)


def _prefixed(mapping: TopicMapping, prefix: str) -> TopicMapping:
    if not prefix:
        return mapping
    try:
        check_topic(prefix)
    except MqttError as error:
        raise PreconditionFailed(f"invalid {COMPONENT}: prefix: {error}") from None
    if prefix.startswith(("/", "$")) or prefix.endswith("/") or len(prefix.encode()) > LONGEST_NAME:
        raise PreconditionFailed(
            f"invalid {COMPONENT}: prefix: must be levels such as 'plant/hall', without '/' at its ends and '$' at its "
            f"beginning, of at most {LONGEST_NAME} bytes"
        )
    return PrefixedTopics(mapping, mapping.routing_key(prefix))
