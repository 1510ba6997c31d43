"""What a delivery to a client of MQTT asks of a message, whichever protocol it came by."""

from typing import Final

from gateway.kernel.messages.message import Header
from gateway_mqtt.codec.data_types import text_of, u32
from gateway_mqtt.codec.properties import PropertyId, write_block
from gateway_mqtt.codec.publish import without_expiry
from gateway_mqtt.translation.header import MQTT, MqttHeader, added_headers
from gateway_mqtt.translation.properties import mqtt_properties, user_properties

#: Facts of other protocols' headers kept; when so many have gathered, all are forgotten.
_KEPT: Final = 1024

#: Longer headers are not kept: what is long is seldom repeated.
_LONGEST_KEPT: Final = 512

_EXPIRY: Final = bytes((PropertyId.MESSAGE_EXPIRY_INTERVAL,))
_LONGEST_EXPIRY_S: Final = 0xFFFFFFFF


class DeliveryView:
    """What is the same for every subscriber.

    ``block`` is the property block of 5.0 without its length. ``expiry_s`` is the life the publisher gave the message,
    ``None`` for no end; ``arrived_at_ms`` when it began in Unix time, 0 if that is not known. ``client_id`` is the
    publisher's, ``None`` unless it spoke MQTT. ``is_copy`` marks a retained message sent because of a subscription, and
    ``identifier`` is that subscription's, 0 for none.
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


def facts_of(header: Header) -> DeliveryView:
    """Return the facts of a header, worked out once as long as it is kept."""
    if isinstance(header, MqttHeader):
        return header.facts or _learn(header)
    if header.format is MQTT:  # edited by the kernel, which does not know this module's class
        return facts_of(MQTT.header(header.raw))
    return _foreign.get(header) or _learn_foreign(header)


def is_plain(header: Header) -> bool:
    """Whether every subscriber sees the message alike: it was not retained and does not expire."""
    if type(header) is MqttHeader:
        return header.is_plain
    if header.format is MQTT:
        return MQTT.header(header.raw).is_plain
    return header.expiration_ms is None


_foreign: Final[dict[Header, DeliveryView]] = {}


def _learn(header: MqttHeader) -> DeliveryView:
    parts = header.parts
    block = without_expiry(parts.block)
    if added := user_properties(added_headers(parts)):
        block += write_block({PropertyId.USER_PROPERTY: added})
    header.facts = DeliveryView(
        header.qos,
        block,
        header.expiry_s,
        is_retained=header.is_retained,
        is_copy=header.is_copy,
        client_id=text_of(parts.client_id),
        identifier=parts.identifier,
        arrived_at_ms=parts.arrived_at_ms,
    )
    return header.facts


def _learn_foreign(header: Header) -> DeliveryView:
    """Translate what AMQP or STOMP said: a persistent message has QoS 1, any other QoS 0."""
    expiration_ms = header.expiration_ms
    expiry_s = None if expiration_ms is None else min(expiration_ms // 1000, _LONGEST_EXPIRY_S)
    facts = DeliveryView(int(header.is_persistent), write_block(mqtt_properties(header.properties)), expiry_s)
    if len(header.raw) <= _LONGEST_KEPT:
        if len(_foreign) >= _KEPT:
            _foreign.clear()
        _foreign[header] = facts
    return facts
