"""A closed connection leaves no reference cycles for the garbage collector."""

import gc
from collections.abc import Iterator

import pytest

from gateway.net.machine import CLOSED_MACHINE
from tests.garbage import collect
from tests.protocols.mqtt.dialogue import Client, Gateway


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def leave(client: Client) -> None:
    """Close the transport and drop its reference to the connection."""
    client.lose()
    client.machine = CLOSED_MACHINE  # type: ignore[assignment]  # as ``PeerProtocol`` does, to which any machine is good


@pytest.mark.parametrize("version", [4, 5])
def test_a_connection_lost_during_its_work_is_freed_at_once(gateway: Gateway, no_collector: None, version: int) -> None:
    listener, sensor = gateway.client("listener", version), gateway.client("sensor", version)
    listener.subscribe("t", 2)
    sensor.request(sensor.write.publish("t", qos=2, id=1), sensor.write.publish("t", qos=2, id=2))
    listener.receive()
    listener.request(listener.write.pubrec(1))
    collect()
    leave(listener)
    leave(sensor)
    del listener, sensor
    assert gc.collect() == 0


def test_a_connection_lost_before_connect_is_freed_at_once(gateway: Gateway, no_collector: None) -> None:
    new_client = gateway.new_client(5)
    collect()
    leave(new_client)
    del new_client
    assert gc.collect() == 0


def test_a_connection_has_the_parts_of_publishing_and_receiving_from_the_first_use_on(gateway: Gateway) -> None:
    sensor = gateway.client("sensor")
    conversation = sensor.machine.conversation
    assert conversation is not None
    assert (conversation.publishing, conversation.receiving) == (None, None)
    sensor.publish("t", b"one")
    assert conversation.publishing is not None
    assert conversation.receiving is None
    sensor.send(sensor.write.puback(7))
    sensor.subscribe("t", 1)
    assert conversation.receiving is not None
    sensor.publish("t", b"two", qos=1, id=2)
    assert sensor.machine.unsettled()
