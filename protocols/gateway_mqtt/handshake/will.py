"""The will message, published if the connection ends without a normal DISCONNECT (MQTT 5.0, 3.1.2.5)."""

from gateway.access import Permissions, PermissionUnknown
from gateway.kernel.errors import AccessRefused
from gateway.kernel.messages.message import Message
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packets import WillPacket
from gateway_mqtt.codec.properties import PropertyId, write_block
from gateway_mqtt.codec.publish import scan_publish_properties
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.scope import Scope
from gateway_mqtt.translation.header import mqtt_header
from gateway_mqtt.translation.topics import TopicBounds, TopicMapping, check_topic

#: Properties of the will itself, which its message does not carry.
_OF_THE_WILL = frozenset({PropertyId.WILL_DELAY_INTERVAL})


class Will:
    """One client's will, from CONNECT until it is published or discarded."""

    def __init__(self, packet: WillPacket) -> None:
        """Check and keep a will. :raises MqttError: if its topic or its payload is invalid."""
        check_topic(packet.topic)
        if packet.properties.get(PropertyId.PAYLOAD_FORMAT_INDICATOR):
            try:
                packet.payload.decode()
            except UnicodeDecodeError:
                raise MqttError(ReasonCode.PAYLOAD_FORMAT_INVALID, "the will's payload is not UTF-8") from None
        self._packet = packet

    def require_accepted(self, bounds: TopicBounds, mapping: TopicMapping) -> None:
        """Check the will's topic against this server's limits. :raises MqttError: if it exceeds one."""
        topic = self._packet.topic
        if objection := bounds.objection(topic, mapping.routing_key(topic)):
            raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"the will's topic {objection}")

    def leave(self, scope: Scope) -> None:
        """Publish the will: now or after its delay, but not later than the session ends (MQTT-3.1.3-9).

        It is discarded if the user has no permission to publish it any more.
        """
        try:
            permissions = scope.permissions
        except AccessRefused:  # the user has lost access to the virtual host
            return
        self._leave(scope, permissions)

    def _leave(self, scope: Scope, permissions: Permissions) -> None:
        packet = self._packet
        routing_key = scope.mapping.routing_key(packet.topic)
        try:
            is_permitted = scope.may_publish(packet.topic, routing_key, permissions)
        except PermissionUnknown as unknown:
            unknown.when_known(lambda: self._leave(scope, permissions))
            return
        if not is_permitted:
            return
        delay_s = min(packet.properties.get(PropertyId.WILL_DELAY_INTERVAL, 0), scope.session.expiry_s)
        block = write_block({name: value for name, value in packet.properties.items() if name not in _OF_THE_WILL})
        expires = scan_publish_properties(block).message_expiry_s is not None
        header = mqtt_header(
            qos=packet.qos,
            retain=packet.retain,
            version5=scope.version == 5,
            client_id=scope.client_id,
            block=block,
            # its expiry interval starts when it is published
            arrived_at_ms=scope.journal.now_ms + delay_s * 1000 if expires else 0,
            mapping=scope.mapping,
        )
        message = Message(scope.exchange_name, routing_key, header, packet.payload)
        scope.vhost.wills.leave(scope.client_id, message, packet.retain, delay_s)
