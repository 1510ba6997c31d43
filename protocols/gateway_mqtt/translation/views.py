"""The views of headers for delivery to MQTT clients: cached with an MQTT header, and in a table for other protocols."""

from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.messages.message import Header
from gateway_mqtt.codec.data_types import text_of
from gateway_mqtt.codec.properties import PropertyId, write_block
from gateway_mqtt.codec.publish import without_expiry
from gateway_mqtt.translation.delivery_view import DeliveryView
from gateway_mqtt.translation.header import MQTT, MqttHeader, added_headers
from gateway_mqtt.translation.properties import mqtt_properties, user_properties
from gateway_mqtt.translation.topics import REVERSIBLE, TopicMapping

#: The limit of cached views of other protocols' headers; the cache is cleared when it is full.
_MAX_CACHED: Final = 1024

#: Longer headers, in bytes, are not cached, because they seldom repeat.
_LONGEST_CACHED: Final = 512

_LONGEST_EXPIRY_S: Final = 0xFFFFFFFF


def delivery_view_of(header: Header, mapping: TopicMapping = REVERSIBLE) -> DeliveryView:
    """Return the view of a header, cached with it. The ``mapping`` counts if it has a prefix."""
    if isinstance(header, MqttHeader):
        return header.view or _create_view(header)
    if header.format is MQTT:  # edited by the kernel, which creates native headers
        return delivery_view_of(MQTT.header(header.raw), mapping)
    if mapping.prefix:
        return _prefixed.get((header, mapping)) or _create_prefixed_view(header, mapping)
    return _foreign.get(header) or _create_foreign_view(header)


def is_plain(header: Header) -> bool:
    """Whether every subscriber sees the message alike: it is not retained and does not expire."""
    if type(header) is MqttHeader:
        return header.is_plain
    if header.format is MQTT:
        return MQTT.header(header.raw).is_plain
    return header.expiration_ms is None


_foreign: Final[dict[Header, DeliveryView]] = {}
_prefixed: Final[dict[tuple[Header, TopicMapping], DeliveryView]] = {}


def _create_view(header: MqttHeader) -> DeliveryView:
    fields = header.fields
    block = without_expiry(fields.block)
    if added := user_properties(added_headers(fields)):
        block += write_block({PropertyId.USER_PROPERTY: added})
    header.view = DeliveryView(
        header.qos,
        block,
        header.expiry_s,
        is_retained=header.is_retained,
        is_copy=header.is_copy,
        client_id=text_of(fields.client_id),
        identifier=fields.identifier,
        arrived_at_ms=fields.arrived_at_ms,
    )
    return header.view


def _create_foreign_view(header: Header) -> DeliveryView:
    view = _translated(header, REVERSIBLE)
    if len(header.raw) <= _LONGEST_CACHED:
        remember(_foreign, header, view, _MAX_CACHED)
    return view


def _create_prefixed_view(header: Header, mapping: TopicMapping) -> DeliveryView:
    view = _translated(header, mapping)
    if len(header.raw) <= _LONGEST_CACHED:
        remember(_prefixed, (header, mapping), view, _MAX_CACHED)
    return view


def _translated(header: Header, mapping: TopicMapping) -> DeliveryView:
    """Translate an AMQP or STOMP header: a persistent message has QoS 1, any other QoS 0."""
    expiration_ms = header.expiration_ms
    expiry_s = None if expiration_ms is None else min(expiration_ms // 1000, _LONGEST_EXPIRY_S)
    return DeliveryView(int(header.is_persistent), write_block(mqtt_properties(header.properties, mapping)), expiry_s)
