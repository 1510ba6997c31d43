"""The answer to MQTT clients while the broker starts: CONNACK with 0x88, or with return code 3 before 5.0."""

from typing import Final

from gateway_mqtt.codec.connecting import connect_version
from gateway_mqtt.codec.data_types import read_varint
from gateway_mqtt.codec.encoding import connack
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import ReasonCode

#: Protocol name and level of the longest name that is known, ``MQIsdp``: the rest of a CONNECT is not read.
_ENOUGH: Final = 2 + 6 + 1


def refusal(data: bytes, reason: str) -> bytes | None:
    """Return the answer to the first bytes of a client; ``None`` while they do not tell its version.

    Empty for what is no CONNECT: such a connection is closed without an answer (MQTT-3.1.0-1).
    """
    if data[0] >> 4 != PacketType.CONNECT:
        return b""
    try:
        length = read_varint(data, 1)
    except MqttError:
        return b""
    if length is None or len(data) < length[1] + min(length[0], _ENOUGH):
        return None
    version = connect_version(data[length[1] :])
    return connack(version, False, ReasonCode.SERVER_UNAVAILABLE, {PropertyId.REASON_STRING: reason})
