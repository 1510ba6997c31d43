"""Addresses of publishes in MQTT and STOMP, as the listeners of this node translate them."""

from collections.abc import Callable

from gateway.config.stomp import Stomp
from gateway.kernel.errors import PreconditionFailed, ProtocolViolation
from gateway.management.context import PublishAddress
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.translation.prefixed_topics import topic_variables
from gateway_mqtt.translation.topics import check_topic, is_reserved
from gateway_stomp.destinations import DestinationKind, parse, with_wildcards


class PublishAddressesOf:
    """The ``PublishAddresses`` of a node. ``stomp`` returns the current settings of STOMP."""

    def __init__(self, mqtt: MqttContext, stomp: Callable[[], Stomp]) -> None:
        self._mqtt = mqtt
        self._stomp = stomp

    def of_topic(self, vhost: str, topic: str, client_id: str, user: str) -> PublishAddress:
        """Return the address of an MQTT topic name. :raises PreconditionFailed: if it is invalid."""
        mapping, exchange = self._mqtt.topics_in(vhost)
        try:
            check_topic(topic)
        except ProtocolViolation as error:
            raise PreconditionFailed(str(error)) from None
        routing_key = mapping.routing_key(topic)
        refusal = self._mqtt.topics.objection(topic, routing_key)
        if not refusal and is_reserved(topic, routing_key):
            refusal = f"topic '{topic}' is reserved for the broker"
        variables = topic_variables(mapping, client_id, user)
        return PublishAddress(exchange, routing_key, variables, refusal=refusal)

    def of_destination(self, destination: str) -> PublishAddress:
        """Return the address of a STOMP destination. :raises PreconditionFailed: if it is invalid."""
        try:
            parsed = parse(destination, self._stomp().default_topic_exchange)
        except ProtocolViolation as error:
            raise PreconditionFailed(str(error).strip()) from None
        if self._stomp().activemq:
            parsed = with_wildcards(parsed)
        declared = parsed.name if parsed.kind is DestinationKind.QUEUE else ""
        is_private = parsed.kind is DestinationKind.TEMP_QUEUE
        refusal = f"'{destination}' is not a valid destination for 'SEND'" if is_private else ""
        return PublishAddress(parsed.exchange, parsed.name, declares_queue=declared, refusal=refusal)
