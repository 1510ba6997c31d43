"""The properties of a message for delivery to MQTT clients, from the header of any protocol."""

from typing import Final

from gateway.kernel.messages.message import Header
from gateway_mqtt.codec.data_types import text_of, u32
from gateway_mqtt.codec.properties import PropertyId, write_block
from gateway_mqtt.codec.publish import without_expiry
from gateway_mqtt.translation.header import MQTT, MqttHeader, added_headers
from gateway_mqtt.translation.properties import mqtt_properties, user_properties

#: The limit of cached views of other protocols' headers; the cache is cleared when it is full.
_MAX_CACHED: Final = 1024

#: Longer headers, in bytes, are not cached, because they seldom repeat.
_LONGEST_CACHED: Final = 512

_EXPIRY: Final = bytes((PropertyId.MESSAGE_EXPIRY_INTERVAL,))
_LONGEST_EXPIRY_S: Final = 0xFFFFFFFF


class DeliveryView:
    """The data of a delivery that is the same for every subscriber.

    ``block`` is the 5.0 property block without its length. ``expiry_s`` is the publisher's expiry interval, ``None``
    without one; ``arrived_at_ms`` its start in Unix time, 0 if unknown. ``client_id`` is the publisher's, ``None``
    unless it used MQTT. ``is_copy`` marks a retained message sent for a new subscription, and ``identifier`` is that
    subscription's, 0 for none.
    """

    __slots__ = (
        "arrived_at_ms",
        "block",
        "block_without_expiry",
        "client_id",
        "expiry_s",
        "identifier",
        "is_copy",
        "is_retained",
        "qos",
    )

    def __init__(
        self,
        qos: int,
        block_without_expiry: bytes,
        expiry_s: int | None,
        *,
        is_retained: bool = False,
        is_copy: bool = False,
        client_id: str | None = None,
        identifier: int = 0,
        arrived_at_ms: int = 0,
    ) -> None:
        self.qos = qos
        self.block_without_expiry = block_without_expiry
        self.block = block_without_expiry
        if expiry_s is not None:
            self.block = _EXPIRY + u32(expiry_s) + block_without_expiry
        self.expiry_s = expiry_s
        self.is_retained = is_retained
        self.is_copy = is_copy
        self.client_id = client_id
        self.identifier = identifier
        self.arrived_at_ms = arrived_at_ms


def delivery_view_of(header: Header) -> DeliveryView:
    """Return the view of a header, cached with it."""
    if isinstance(header, MqttHeader):
        return header.view or _create_view(header)
    if header.format is MQTT:  # edited by the kernel, which creates native headers
        return delivery_view_of(MQTT.header(header.raw))
    return _foreign.get(header) or _create_foreign_view(header)


def is_plain(header: Header) -> bool:
    """Whether every subscriber sees the message alike: it is not retained and does not expire."""
    if type(header) is MqttHeader:
        return header.is_plain
    if header.format is MQTT:
        return MQTT.header(header.raw).is_plain
    return header.expiration_ms is None


_foreign: Final[dict[Header, DeliveryView]] = {}


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
    """Translate an AMQP or STOMP header: a persistent message has QoS 1, any other QoS 0."""
    expiration_ms = header.expiration_ms
    expiry_s = None if expiration_ms is None else min(expiration_ms // 1000, _LONGEST_EXPIRY_S)
    view = DeliveryView(int(header.is_persistent), write_block(mqtt_properties(header.properties)), expiry_s)
    if len(header.raw) <= _LONGEST_CACHED:
        if len(_foreign) >= _MAX_CACHED:
            _foreign.clear()
        _foreign[header] = view
    return view
