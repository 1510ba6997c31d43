"""The origin of a message: the name of its protocol in traces."""

import pytest

from gateway.kernel.messages.origin import Origin


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("amqp091", "amqp091"),
        ("MQTT 3-1", "mqtt310"),
        ("MQTT 3-1-1", "mqtt311"),
        ("MQTT 5-0", "mqtt50"),
        ("STOMP 1.0", "stomp10"),
        ("STOMP 1.1", "stomp11"),
        ("STOMP 1.2", "stomp12"),
        ("HTTP", "http"),
        ("acme", "acme"),
    ],
)
def test_traces_name_the_protocol_with_its_version(protocol: str, name: str) -> None:
    assert Origin("c", 1, "u", protocol).protocol_in_traces == name
