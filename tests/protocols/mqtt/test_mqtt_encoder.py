"""Encoding of PUBLISH for subscribers: one encoding per version and QoS."""

import pytest

from gateway.kernel.messages.message import Message
from gateway_mqtt.traffic.encoder import Encoder, NumberedPacket
from gateway_mqtt.translation.header import mqtt_header
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import WRITERS, Writer, user_property


def message(topic: str = "t/1", body: bytes = b"hi", *, block: bytes = b"") -> Message:
    header = mqtt_header(qos=2, retain=False, version5=True, client_id="sensor", block=block)
    return Message("amq.topic", REVERSIBLE.routing_key(topic), header, body)


def encoder(version: int) -> Encoder:
    return Encoder(version == 5, REVERSIBLE)


def octets(packet: NumberedPacket, packet_id: int) -> bytes:
    return packet.head + packet_id.to_bytes(2, "big") + packet.tail


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("body", [b"", b"hi", bytes(100), bytes(20_000)], ids=len)
def test_encoded_packets_match_the_specification(version: int, body: bytes) -> None:
    write: Writer = WRITERS[version]
    properties = user_property("a", "b")
    sent = message(body=body, block=properties)
    encode = encoder(version)
    assert encode.at_most_once(sent) == write.publish("t/1", body, properties=properties)
    for qos in (1, 2):
        expected = write.publish("t/1", body, qos=qos, id=7, properties=properties)
        packet = encode.acknowledged(sent, qos)
        assert octets(packet, 7) == expected
        assert (packet.qos, packet.size) == (qos, len(expected))


def test_a_message_is_encoded_once_per_qos() -> None:
    encode, sent = encoder(5), message()
    assert encode.at_most_once(sent) is encode.at_most_once(sent)
    assert encode.acknowledged(sent, 1) is encode.acknowledged(sent, 1)
    assert encode.acknowledged(sent, 1) is not encode.acknowledged(sent, 2)


@pytest.mark.parametrize(
    ("published", "subscribed", "sent_with"), [(0, 1, 0), (1, 2, 1), (2, 1, 1), (2, 2, 2), (0, 2, 0)]
)
def test_a_packet_has_the_lower_qos_of_message_and_subscription(
    published: int, subscribed: int, sent_with: int
) -> None:
    header = mqtt_header(qos=published, retain=False, version5=True, client_id="sensor", block=b"")
    sent = Message("amq.topic", "t.1", header, b"hi")
    assert encoder(5).acknowledged(sent, subscribed).qos == sent_with


@pytest.mark.parametrize("retain", [False, True])
def test_only_a_message_that_all_subscribers_see_alike_has_a_shared_packet(retain: bool) -> None:
    header = mqtt_header(qos=1, retain=retain, version5=True, client_id="sensor", block=b"")
    sent = Message("amq.topic", "t.1", header, b"hi")
    assert bool(encoder(5).at_most_once(sent)) is not retain
    assert bool(encoder(5).acknowledged(sent, 1).qos) is not retain


def test_a_new_message_replaces_the_cached_encoding() -> None:
    encode = encoder(5)
    first, second = message(body=b"one"), message(body=b"two")
    for _ in range(2):
        for sent in (first, second):
            assert encode.at_most_once(sent).endswith(sent.body)
            assert encode.acknowledged(sent, 1).tail.endswith(sent.body)


def test_each_mapping_encodes_its_own_topic() -> None:
    sent = message("a.b/c")
    assert b"a.b/c" in Encoder(True, REVERSIBLE).at_most_once(sent)
    assert b"a%2Eb/c" in Encoder(True, LOSSY).at_most_once(sent)


def pieces(clients: list[Client]) -> list[bytes]:
    return [piece for client in clients for piece in client.machine.outbox.pieces if b"hello" in piece]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_subscribers_of_a_version_and_qos_share_the_bytes_of_a_large_message(qos: int) -> None:
    gateway = Gateway()
    clients = [gateway.client(f"app-{number}", version) for number, version in enumerate([5, 4] * 10)]
    for client in clients:
        client.subscribe("t", qos)
    sensor = gateway.client("sensor")
    sensor.machine.receive(sensor.write.publish("t", b"hello" + bytes(2000), qos=qos, id=1))
    sent = pieces(clients)
    assert len(sent) == 20
    assert len({id(piece) for piece in sent}) == 2
