"""The properties of a message that its delivery to an MQTT client needs."""

from typing import Final

from gateway_mqtt.codec.data_types import u32
from gateway_mqtt.codec.properties import PropertyId

_EXPIRY: Final = bytes((PropertyId.MESSAGE_EXPIRY_INTERVAL,))


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
