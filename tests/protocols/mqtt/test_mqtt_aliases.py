"""Topic aliases of client and server."""

import pytest

from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.traffic.aliases import IncomingAliases, OutgoingAliases
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import maximum_packet_size, topic_alias_maximum

# ---- Aliases of the client -------------------------------------------------------------------------------------------


def test_an_alias_resolves_to_the_last_topic_it_was_sent_with() -> None:
    aliases = IncomingAliases(2)
    assert aliases.resolve(1, b"a") == b"a"
    assert aliases.resolve(2, b"b") == b"b"
    assert aliases.resolve(1, b"") == b"a"
    assert aliases.resolve(1, b"c") == b"c"
    assert aliases.resolve(1, b"") == b"c"
    assert aliases.resolve(2, b"") == b"b"


@pytest.mark.parametrize(("alias", "topic"), [(0, b"a"), (3, b"a"), (65_535, b"")])
def test_an_alias_out_of_range_is_refused(alias: int, topic: bytes) -> None:
    with pytest.raises(MqttError) as refused:
        IncomingAliases(2).resolve(alias, topic)
    assert refused.value.reason is ReasonCode.TOPIC_ALIAS_INVALID


def test_an_alias_without_a_topic_is_refused() -> None:
    with pytest.raises(MqttError) as refused:
        IncomingAliases(2).resolve(1, b"")
    assert refused.value.reason is ReasonCode.PROTOCOL_ERROR


# ---- Aliases of the server -------------------------------------------------------------------------------------------


def test_topics_get_aliases_in_order_until_the_maximum_is_reached() -> None:
    aliases = OutgoingAliases(2)
    assert aliases.alias("a") == (1, False)
    assert aliases.alias("b") == (2, False)
    assert aliases.alias("c") == (0, False)
    assert aliases.alias("a") == (1, True)


def test_a_withdrawn_alias_is_assigned_again() -> None:
    aliases = OutgoingAliases(1)
    aliases.alias("a")
    aliases.forget("a")
    assert aliases.alias("b") == (1, False)
    assert aliases.alias("a") == (0, False)


def test_a_message_that_is_too_large_assigns_no_alias() -> None:
    """Otherwise the next message would use an alias that the client has not received."""
    gateway = Gateway()
    app = gateway.client("app", properties=topic_alias_maximum(5) + maximum_packet_size(40))
    app.subscribe("t")
    sensor = gateway.client("sensor")
    sensor.publish("t", bytes(100))
    assert app.receive() == []
    sensor.publish("t", b"one")
    sensor.publish("t", b"two")
    assert app.receive() == ["PUBLISH t 'one' TOPIC_ALIAS=1", "PUBLISH  'two' TOPIC_ALIAS=1"]
    sensor.publish("t", bytes(100))
    sensor.publish("t", b"three")
    assert app.receive() == ["PUBLISH  'three' TOPIC_ALIAS=1"]
