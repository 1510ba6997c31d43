"""Decoding of PUBLISH (3.3), the most frequent packet: into plain values, without an object for the packet."""

from typing import Final

from gateway_mqtt.codec.data_types import read_bounded_varint
from gateway_mqtt.codec.errors import malformed, protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import Properties, PropertyId, read_block, write_block
from gateway_mqtt.translation.topics import check_topic


def decode_publish(version: int, flags: int, data: bytes, start: int, end: int) -> tuple[bytes, int, int, int]:
    """Decode the part before the payload of the PUBLISH whose fixed header ends at ``start``.

    ``flags`` are the lower half of its first byte. Returns the topic's bytes, not validated; the packet identifier, 0
    with QoS 0; the start of the properties after their length; and the start of the payload. Before 5.0 the last two
    are equal.

    :raises MqttError: for contradictory flags, packet identifier 0 or a packet that is cut short.
    """
    at = start + 2
    if at > end:
        raise malformed("PUBLISH without a topic")
    topic_end = after = at + (data[start] << 8 | data[start + 1])
    packet_id = 0
    if flags & 0x06:
        after += 2
        if flags & 0x06 == 0x06:
            raise malformed("PUBLISH of QoS 3")  # MQTT-3.3.1-4
        if after > end:
            raise malformed("PUBLISH is shorter than its topic")
        packet_id = data[topic_end] << 8 | data[topic_end + 1]
        if not packet_id:
            raise protocol_error("packet identifier 0")  # MQTT-2.2.1-3
    elif flags & 0x08 and version > 3:
        raise malformed("DUP in PUBLISH of QoS 0")  # MQTT-3.3.1-2
    elif after > end:
        raise malformed("PUBLISH is shorter than its topic")
    if version < 5:
        return data[at:topic_end], packet_id, after, after
    if after < end and data[after] == 0:
        after += 1
        return data[at:topic_end], packet_id, after, after
    size, after = read_bounded_varint(data, after, end)
    if after + size > end:
        raise malformed("PUBLISH is shorter than its properties")
    return data[at:topic_end], packet_id, after, after + size


class PublishProperties:
    """Properties of a PUBLISH; ``payload_format`` and ``topic_alias`` are 0 if absent."""

    __slots__ = (
        "content_type",
        "correlation_data",
        "message_expiry_s",
        "payload_format",
        "response_topic",
        "topic_alias",
        "user_properties",
    )

    def __init__(
        self,
        payload_format: int = 0,
        message_expiry_s: int | None = None,
        topic_alias: int = 0,
        response_topic: str | None = None,
        correlation_data: bytes | None = None,
        user_properties: tuple[tuple[str, str], ...] = (),
        content_type: str | None = None,
    ) -> None:
        self.payload_format = payload_format
        self.message_expiry_s = message_expiry_s
        self.topic_alias = topic_alias
        self.response_topic = response_topic
        self.correlation_data = correlation_data
        self.user_properties = user_properties
        self.content_type = content_type


_ALIAS: Final = bytes((PropertyId.TOPIC_ALIAS,))

NO_PROPERTIES: Final = PublishProperties()


def scan_publish_properties(block: bytes) -> PublishProperties:
    """Decode the properties of a client's PUBLISH, without their length.

    :raises MqttError: ``PROTOCOL_ERROR`` for a subscription identifier, which only servers send (MQTT-3.3.4-6),
        ``TOPIC_NAME_INVALID`` for a response topic with wildcards (MQTT-3.3.2-14), ``TOPIC_ALIAS_INVALID`` for alias 0
        (MQTT-3.3.2-8), and the errors of :func:`gateway_mqtt.codec.properties.read_block`.
    """
    if not block:
        return NO_PROPERTIES
    properties = read_block(block, 0, len(block), PacketType.PUBLISH)
    if PropertyId.SUBSCRIPTION_IDENTIFIER in properties:
        raise protocol_error("Subscription Identifier in PUBLISH from a client")
    response_topic = properties.get(PropertyId.RESPONSE_TOPIC)
    if response_topic is not None:
        check_topic(response_topic)
    return PublishProperties(
        properties.get(PropertyId.PAYLOAD_FORMAT_INDICATOR, 0),
        properties.get(PropertyId.MESSAGE_EXPIRY_INTERVAL),
        properties.get(PropertyId.TOPIC_ALIAS, 0),
        response_topic,
        properties.get(PropertyId.CORRELATION_DATA),
        tuple(properties.get(PropertyId.USER_PROPERTY, ())),
        properties.get(PropertyId.CONTENT_TYPE),
    )


def without_alias(block: bytes) -> bytes:
    """Return a validated property block without its topic alias, which is valid on its own connection only."""
    if block[:1] == _ALIAS:  # the usual case: the alias comes first or alone
        return block[3:]
    return _without(block, PropertyId.TOPIC_ALIAS)


def without_expiry(block: bytes) -> bytes:
    """Return a validated property block without its message expiry interval."""
    return _without(block, PropertyId.MESSAGE_EXPIRY_INTERVAL)


def will_block(properties: Properties) -> bytes:
    """Return the properties of a will as the block of its PUBLISH, without the delay (3.1.3.2)."""
    return write_block({key: value for key, value in properties.items() if key is not PropertyId.WILL_DELAY_INTERVAL})


def _without(block: bytes, key: PropertyId) -> bytes:
    if bytes((key,)) not in block:
        return block
    properties = read_block(block, 0, len(block), PacketType.PUBLISH)
    return write_block({other: value for other, value in properties.items() if other is not key})
