"""The refusal of MQTT clients while the broker starts: CONNACK with 0x88, or with return code 3 before 5.0."""

from typing import Final

from gateway_mqtt.codec.connecting import connect_version
from gateway_mqtt.codec.data_types import read_varint
from gateway_mqtt.codec.encoding import connack
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import ReasonCode

#: The size of the longest protocol name, ``MQIsdp``, with its length and level: the rest of a CONNECT is not read.
_VERSION_SIZE: Final = 2 + 6 + 1


def refusal(data: bytes, reason: str) -> bytes | None:
    """Return the answer to the first bytes of a client; ``None`` until they contain its version.

    Empty if they are not a CONNECT: the connection is closed without an answer (MQTT-3.1.0-1).
    """
    if data[0] >> 4 != PacketType.CONNECT:
        return b""
    try:
        length = read_varint(data, 1)
    except MqttError:
        return b""
    if length is None:
        return None
    body, end = length[1], length[1] + min(length[0], _VERSION_SIZE)
    if len(data) < end:
        return None
    version = connect_version(data[body:end])  # what follows may or may not have arrived
    return connack(version, False, ReasonCode.SERVER_UNAVAILABLE, {PropertyId.REASON_STRING: reason})
