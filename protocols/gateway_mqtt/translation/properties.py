"""Translation of properties between MQTT and the kernel, as RabbitMQ translates between its protocols.

A property that the other side cannot carry is omitted without an error. Between two MQTT clients nothing is lost,
because a message keeps its own bytes (:mod:`gateway_mqtt.translation.header`).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.kernel.messages import message as kernel
from gateway.kernel.messages.message import Value
from gateway_mqtt.codec.data_types import LONGEST_STRING, utf8
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.properties import Properties, PropertyId
from gateway_mqtt.codec.publish import PublishProperties
from gateway_mqtt.translation.topics import REVERSIBLE, TopicMapping, check_topic

CORRELATION_ID: Final = "x-correlation-id"
"""The header for correlation data that does not fit into an AMQP short string."""

REPLY_TO_TOPIC: Final = "x-reply-to-topic"
"""The header for the response topic, as a routing key."""

_LONGEST_SHORT_STRING: Final = 255


def kernel_properties(
    source: PublishProperties, qos: int, mapping: TopicMapping, headers: Mapping[str, Value]
) -> kernel.Properties:
    """Translate the properties of a PUBLISH; ``headers`` override its user properties."""
    correlation_id = _short_text(source.correlation_data)
    headers_by_name: dict[str, Value] = dict(_first_of_each(source.user_properties))
    if source.correlation_data is not None and correlation_id is None:
        headers_by_name[CORRELATION_ID] = source.correlation_data
    if source.response_topic is not None:
        headers_by_name[REPLY_TO_TOPIC] = mapping.routing_key(source.response_topic)
    return kernel.Properties(
        content_type=_content_type(source.content_type),
        headers={**headers_by_name, **headers},
        delivery_mode=2 if qos else 1,
        correlation_id=correlation_id,
        expiration=None if source.message_expiry_s is None else str(source.message_expiry_s * 1000),
    )


def mqtt_properties(source: kernel.Properties, mapping: TopicMapping = REVERSIBLE) -> Properties:
    """Translate the kernel properties of another protocol's message, without its expiration."""
    properties: Properties = {}
    if source.content_type is not None and _is_carried(source.content_type):
        properties[PropertyId.CONTENT_TYPE] = source.content_type
    if (topic := _response_topic(source.headers.get(REPLY_TO_TOPIC), mapping)) is not None:
        properties[PropertyId.RESPONSE_TOPIC] = topic
    if (data := _correlation_data(source)) is not None:
        properties[PropertyId.CORRELATION_DATA] = data
    if pairs := user_properties(source.headers):
        properties[PropertyId.USER_PROPERTY] = pairs
    return properties


def user_properties(headers: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Return the headers that are text, numbers or booleans; MQTT has no text for tables, arrays, bytes and times."""
    pairs = ((name, _text(value)) for name, value in headers.items() if name not in (CORRELATION_ID, REPLY_TO_TOPIC))
    return [(name, text) for name, text in pairs if text is not None and _is_carried(name) and _is_carried(text)]


# ---- To the kernel --------------------------------------------------------------------------------------------------


def _first_of_each(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the first pair of each name that AMQP can carry, sorted by name."""
    first: dict[str, str] = {}
    for name, value in pairs:
        if len(name.encode()) <= _LONGEST_SHORT_STRING:
            first.setdefault(name, value)
    return sorted(first.items())


def _short_text(octets: bytes | None) -> str | None:
    if octets is None or len(octets) > _LONGEST_SHORT_STRING:
        return None
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return None


def _content_type(text: str | None) -> str | None:
    return text if text is not None and text.isascii() and len(text) <= _LONGEST_SHORT_STRING else None


# ---- To MQTT --------------------------------------------------------------------------------------------------------


def _response_topic(routing_key: Value, mapping: TopicMapping) -> str | None:
    if not isinstance(routing_key, str):
        return None
    topic = mapping.topic(routing_key)
    try:
        check_topic(topic)
    except MqttError:
        return None
    return topic if _is_carried(topic) else None


def _correlation_data(source: kernel.Properties) -> bytes | None:
    value = source.headers.get(CORRELATION_ID) if source.correlation_id is None else source.correlation_id
    data = value.encode(errors="surrogatepass") if isinstance(value, str) else value
    return data if isinstance(data, bytes) and len(data) <= LONGEST_STRING else None


def _text(value: Value) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else None


def _is_carried(text: str) -> bool:
    """Whether MQTT can carry a text."""
    try:
        utf8(text)
    except ValueError:
        return False
    return True
