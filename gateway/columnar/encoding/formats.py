"""The header formats of all protocols and the properties that only one protocol has."""

from collections.abc import Mapping
from typing import Final, cast

from gateway.columnar.encoding.envelope_columns import FactFinder, Specialities, Speciality, text
from gateway.kernel.messages.message import Header, HeaderFormat
from gateway.kernel.messages.native_header import PLAIN
from gateway_amqp.header import AMQP
from gateway_mqtt.translation.header import MQTT, MqttHeader, mapping_of
from gateway_stomp.header import STOMP

FORMATS: Final[Mapping[str, HeaderFormat]] = {AMQP.name: AMQP, MQTT.name: MQTT, STOMP.name: STOMP, PLAIN.name: PLAIN}


def _of_mqtt(header: Header, routing_key: str) -> Specialities:
    """Return the client id, topic and publish options of an MQTT message."""
    said = cast(MqttHeader, header)
    topic = text(mapping_of(said.parts).topic(routing_key))
    client_id = said.parts.client_id.decode(errors="replace")
    return Specialities(client_id, {"topic": topic, "qos": said.qos, "retain": said.is_retained})


SPECIALITIES: Final[Mapping[str, Speciality]] = {MQTT.name: _of_mqtt}


def fact_finder() -> FactFinder:
    """Return the decoder of envelopes for all protocols."""
    return FactFinder(FORMATS, SPECIALITIES)
