"""The topic aliases of a client, which another leader does not know (3.3.2.3.4)."""

from gateway_mqtt.codec.data_types import utf8
from gateway_mqtt.codec.encoding import packet
from gateway_mqtt.codec.errors import protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId, read_block
from gateway_mqtt.codec.publish import decode_publish


class RelayedAliases:
    """Owns the topics by alias, and which of them the present leader knows."""

    def __init__(self) -> None:
        self._topic_by_alias: dict[int, bytes] = {}
        self._told: set[int] = set()

    def leader_lost(self) -> None:
        """The next leader knows none."""
        self._told.clear()

    def with_topic(self, data: bytes, body: int) -> tuple[bytes, bytes]:
        """Return a PUBLISH of MQTT 5.0 as the present leader understands it, and as any leader does.

        :raises MqttError: if it cannot be read, or its alias has no topic.
        """
        topic, _, block, payload = decode_publish(5, data[0] & 0x0F, data, body, len(data))
        if block == payload:
            return data, data
        alias = read_block(data, block, payload, PacketType.PUBLISH).get(PropertyId.TOPIC_ALIAS, 0)
        if not alias:
            return data, data
        if topic:
            self._topic_by_alias[alias] = topic
            self._told.add(alias)
            return data, data
        known = self._topic_by_alias.get(alias)
        if known is None:
            raise protocol_error(f"topic alias {alias} has no topic yet")
        whole = packet(data[0], utf8(known.decode()) + data[body + 2 :])
        if alias in self._told:
            return data, whole
        self._told.add(alias)
        return whole, whole
