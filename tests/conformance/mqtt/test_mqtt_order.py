"""The order of messages and of their acknowledgements (4.6)."""

import pytest

from tests.conformance.mqtt.tables import statements
from tests.protocols.mqtt.dialogue import Client, Gateway


def published(writer: Client, qos: int, count: int = 20, topic: str = "t") -> list[str]:
    """Publish ``count`` messages in one write; return what is received."""
    write = writer.write
    numbers = range(1, count + 1)
    return writer.request(*(write.publish(topic, b"%d" % number, qos=qos, id=number) for number in numbers))


@statements("4.6.0-2", "4.6.0-2 4.6.0-6")
def test_pubacks_are_in_the_order_of_their_publishes(gateway: Gateway, version: int) -> None:
    kept = gateway.client("kept", is_clean=False, expiry=100)
    kept.subscribe("durable", 1)
    gateway.client("r").subscribe("t", 1)
    writer = gateway.client("w", version)
    write = writer.write
    topics = ["t", "durable", "t", "t", "durable", "t"]  # messages for the durable queue wait for the disk
    answers = writer.request(*(write.publish(topic, qos=1, id=number + 1) for number, topic in enumerate(topics)))
    assert answers == [f"PUBACK #{number + 1}" for number in range(len(topics))]


@statements("4.6.0-3", "4.6.0-3 4.6.0-6")
def test_pubrecs_are_in_the_order_of_their_publishes(gateway: Gateway, version: int) -> None:
    gateway.client("r").subscribe("t", 1)
    assert published(gateway.client("w", version), 2) == [f"PUBREC #{number}" for number in range(1, 21)]


@statements("4.6.0-4", "4.6.0-4 4.6.0-6")
def test_pubrels_are_in_the_order_of_their_pubrecs(gateway: Gateway, version: int) -> None:
    reader = gateway.client("r", version)
    reader.subscribe("t", 2)
    published(gateway.client("w"), 2, 5)
    reader.receive()
    order = (3, 1, 5, 2, 4)
    assert reader.request(*map(reader.write.pubrec, order)) == [f"PUBREL #{number}" for number in order]


@statements("4.6.0-5 4.6.0-6", "4.6.0-5 4.6.0-6")
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_messages_are_delivered_in_the_order_of_their_publishes(
    gateway: Gateway, version: int, qos: int, granted: int
) -> None:
    readers = [gateway.client(f"r{number}", version) for number in range(3)]
    for reader, filter in zip(readers, ("t", "+", "#"), strict=True):
        reader.subscribe(filter, granted)
    published(gateway.client("w"), qos)
    for reader in readers:
        assert [line.split()[-1] for line in reader.receive()] == [f"'{number}'" for number in range(1, 21)]


@statements("4.6.0-5", "4.6.0-6")
@pytest.mark.parametrize("window", [1, 3])
def test_a_small_receive_maximum_keeps_the_order(version: int, window: int) -> None:
    gateway = Gateway(prefetch=window)
    reader = gateway.client("r", version)
    reader.subscribe("t", 1)
    published(gateway.client("w"), 1)
    answers = reader.receive()
    for number in range(1, 21):
        answers += reader.puback(number)
    assert [line.split()[-1] for line in answers] == [f"'{number}'" for number in range(1, 21)]


@statements("4.6.0-5", "4.6.0-6 4.6.0-1")
def test_resent_messages_precede_queued_ones(gateway: Gateway, version: int) -> None:
    reader = gateway.client("r", version, is_clean=False, expiry=100)
    reader.subscribe("t", 1)
    writer = gateway.client("w")
    published(writer, 1, 3)
    assert len(reader.receive()) == 3
    reader.lose()
    writer.publish("t", b"4", qos=1, id=4)
    assert gateway.client("r", version, is_clean=False).backlog == [
        "PUBLISH q1 #1 dup t '1'",
        "PUBLISH q1 #2 dup t '2'",
        "PUBLISH q1 #3 dup t '3'",
        "PUBLISH q1 #4 t '4'",
    ]
