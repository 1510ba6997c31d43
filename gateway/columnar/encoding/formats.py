"""The header formats of all protocols and the properties that only one protocol has."""

from collections.abc import Mapping
from typing import Final, cast

from gateway.columnar.encoding.direct_headers import AmqpHeaders, put_mqtt_header
from gateway.columnar.encoding.envelope_columns import EnvelopeDecoder, ProtocolProperties, ReadProtocolProperties, text
from gateway.columnar.encoding.envelope_reader import EnvelopeReader
from gateway.kernel.messages.message import Header, HeaderFormat
from gateway.kernel.messages.native_header import NATIVE
from gateway_amqp.header import AMQP
from gateway_mqtt.translation.header import MQTT, MqttHeader, mapping_of
from gateway_stomp.header import STOMP

FORMATS: Final[Mapping[str, HeaderFormat]] = {AMQP.name: AMQP, MQTT.name: MQTT, STOMP.name: STOMP, NATIVE.name: NATIVE}


def _of_mqtt(header: Header, routing_key: str) -> ProtocolProperties:
    """Return the client id, topic and publish options of an MQTT message."""
    properties = cast(MqttHeader, header)
    topic = text(mapping_of(properties.fields).topic(routing_key))
    client_id = properties.fields.client_id.decode(errors="replace")
    return ProtocolProperties(client_id, {"topic": topic, "qos": properties.qos, "retain": properties.is_retained})


PROTOCOL_PROPERTIES: Final[Mapping[str, ReadProtocolProperties]] = {MQTT.name: _of_mqtt}


def envelope_decoder() -> EnvelopeDecoder:
    """Return the decoder of envelopes for all protocols."""
    return EnvelopeDecoder(FORMATS, PROTOCOL_PROPERTIES)


def envelope_reader() -> EnvelopeReader:
    """Return the reader of envelopes for all protocols; those of AMQP and MQTT are read directly."""
    return EnvelopeReader(envelope_decoder(), {AMQP.name: AmqpHeaders().put, MQTT.name: put_mqtt_header})
