"""Topic aliases, both ways: what a number stands for, and that both sides know it."""

import pytest

from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.traffic.aliases import IncomingAliases, OutgoingAliases
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import maximum_packet_size, topic_alias_maximum

# ---- The client's ----------------------------------------------------------------------------------------------------


def test_an_alias_stands_for_the_topic_it_came_with_last() -> None:
    aliases = IncomingAliases(2)
    assert aliases.resolve(1, b"a") == b"a"
    assert aliases.resolve(2, b"b") == b"b"
    assert aliases.resolve(1, b"") == b"a"
    assert aliases.resolve(1, b"c") == b"c"
    assert aliases.resolve(1, b"") == b"c"
    assert aliases.resolve(2, b"") == b"b"


@pytest.mark.parametrize(("alias", "topic"), [(0, b"a"), (3, b"a"), (65_535, b"")])
def test_one_out_of_bounds_is_refused(alias: int, topic: bytes) -> None:
    with pytest.raises(MqttError) as refused:
        IncomingAliases(2).resolve(alias, topic)
    assert refused.value.reason is ReasonCode.TOPIC_ALIAS_INVALID


def test_one_that_stands_for_nothing_yet_is_refused() -> None:
    with pytest.raises(MqttError) as refused:
        IncomingAliases(2).resolve(1, b"")
    assert refused.value.reason is ReasonCode.PROTOCOL_ERROR


# ---- Ours ------------------------------------------------------------------------------------------------------------


def test_topics_get_aliases_in_the_order_they_come_as_long_as_there_are_any() -> None:
    aliases = OutgoingAliases(2)
    assert aliases.alias("a") == (1, False)
    assert aliases.alias("b") == (2, False)
    assert aliases.alias("c") == (0, False)
    assert aliases.alias("a") == (1, True)


def test_one_that_was_taken_back_is_given_again() -> None:
    aliases = OutgoingAliases(1)
    aliases.alias("a")
    aliases.forget("a")
    assert aliases.alias("b") == (1, False)
    assert aliases.alias("a") == (0, False)


def test_a_message_too_large_teaches_no_alias() -> None:
    """Else the next one would come with a number that the client never heard of."""
    gateway = Gateway()
    app = gateway.client("app", properties=topic_alias_maximum(5) + maximum_packet_size(40))
    app.subscribe("t")
    sensor = gateway.client("sensor")
    sensor.publish("t", bytes(100))
    assert app.hear() == []
    sensor.publish("t", b"one")
    sensor.publish("t", b"two")
    assert app.hear() == ["PUBLISH t 'one' TOPIC_ALIAS=1", "PUBLISH  'two' TOPIC_ALIAS=1"]
    sensor.publish("t", bytes(100))
    sensor.publish("t", b"three")
    assert app.hear() == ["PUBLISH  'three' TOPIC_ALIAS=1"]
