"""Reassembly of packets from arbitrary pieces, without repeated copies of large ones."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.incoming import IncomingPackets, remaining_length
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.connection import Connection
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import FIVE, varint

# ---- The remaining length (1.5.5, 2.1.4) -----------------------------------------------------------------------------


@given(st.integers(0, 268_435_455), st.binary(max_size=3))
def test_a_remaining_length_is_decoded_at_any_position(length: int, before: bytes) -> None:
    data = before + b"\x30" + varint(length)
    assert remaining_length(data, len(before), len(data), 2**29) == (length, len(data))


@given(st.integers(128, 268_435_455))
def test_an_incomplete_remaining_length_returns_none(length: int) -> None:
    data = b"\x30" + varint(length)
    for end in range(1, len(data)):
        assert remaining_length(data[:end], 0, end, 2**29) is None


def test_a_remaining_length_of_more_than_four_bytes_is_malformed() -> None:
    with pytest.raises(MqttError) as refused:
        remaining_length(b"\x30\xff\xff\xff\xff\x01", 0, 6, 2**29)
    assert refused.value.reason is ReasonCode.MALFORMED_PACKET


@pytest.mark.parametrize(("limit", "is_too_large"), [(202, True), (203, False)])
def test_the_limit_applies_to_the_whole_packet(limit: int, is_too_large: bool) -> None:
    data = b"\x30" + varint(200)
    if not is_too_large:
        assert remaining_length(data, 0, len(data), limit) == (200, 3)
        return
    with pytest.raises(MqttError) as refused:
        remaining_length(data, 0, len(data), limit)
    assert refused.value.reason is ReasonCode.PACKET_TOO_LARGE


# ---- Pieces ----------------------------------------------------------------------------------------------------------


def test_incomplete_bytes_wait_until_enough_have_arrived() -> None:
    incoming = IncomingPackets(b"ab", 3)
    assert incoming.feed(b"c") == b""
    assert incoming.size == 3
    assert incoming.feed(b"defg") == b"abcdefg"


@pytest.mark.parametrize("piece", [1, 1_000, 1_400])
def test_a_large_packet_is_parsed_once_however_many_pieces_it_arrives_in(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    read = Connection._read

    def counting(connection: Connection, data: bytes) -> None:
        looked_at.append(len(data))
        read(connection, data)

    monkeypatch.setattr(Connection, "_read", counting)
    gateway = Gateway()
    sensor = gateway.client("sensor")
    looked_at.clear()
    body = bytes(10_000 if piece == 1 else 1_000_000)
    packet = FIVE.publish("t", body, qos=1, id=1)
    for at in range(0, len(packet), piece):
        sensor.machine.receive(packet[at : at + piece])
    assert sensor.receive() == ["PUBACK #1 NO_MATCHING_SUBSCRIBERS"]
    assert sum(looked_at) <= len(packet) + 2 * piece + 10


# ---- Cuts ------------------------------------------------------------------------------------------------------------

#: Packets of many types, of a client that receives its own messages.
CONVERSATION = b"".join(
    (
        FIVE.connect("self"),
        FIVE.subscribe(("t/#", 2), ("u", 1), id=9),
        FIVE.publish("t/1", b"none"),
        FIVE.publish("u", b"one", qos=1, id=1),
        FIVE.puback(1),
        FIVE.publish("t/2", bytes(300), qos=2, id=2),
        FIVE.pubrel(2),
        FIVE.pubrec(2),
        FIVE.pubcomp(2),
        FIVE.pingreq(),
        FIVE.publish("t/3", b"", qos=2, id=2),
        FIVE.unsubscribe("t/#", "nothing", id=10),
        FIVE.publish("t/3", b"unheard"),
        FIVE.pubrec(3, 0x80),
        FIVE.publish("t/+", b"wrong"),
        FIVE.pingreq(),
    )
)


def answers_to(*pieces: bytes) -> list[str]:
    """Return what a new client receives that sends these pieces, one in each turn."""
    client = Gateway().new_client()
    received: list[str] = []
    for piece in pieces:
        received += client.request(piece)
    return received


WHOLE = answers_to(CONVERSATION)


def test_the_answers_to_the_uncut_packets() -> None:
    assert [line.split(" ")[0] for line in WHOLE] == [
        *("CONNACK", "SUBACK", "PUBLISH", "PUBLISH", "PUBACK", "PUBLISH", "PUBREC", "PUBCOMP", "PUBREL", "PINGRESP"),
        *("PUBLISH", "PUBREC", "UNSUBACK", "DISCONNECT", "closed"),
    ]


@given(st.lists(st.integers(0, len(CONVERSATION)), max_size=30))
def test_cutting_the_bytes_anywhere_does_not_change_the_answers(places: list[int]) -> None:
    ends = [0, *sorted(places), len(CONVERSATION)]
    assert answers_to(*(CONVERSATION[start:stop] for start, stop in pairwise(ends) if stop > start)) == WHOLE


def test_sending_bytes_one_by_one_does_not_change_the_answers() -> None:
    assert answers_to(*(CONVERSATION[at : at + 1] for at in range(len(CONVERSATION)))) == WHOLE


def test_the_size_of_a_packet_of_which_a_part_was_received_is_known() -> None:
    """Reads of large packets grow by it."""
    incoming = IncomingPackets(b"part", 70_000)
    assert incoming.awaited == 70_004
    assert incoming.feed(bytes(60_000)) == b""
    assert incoming.awaited == 70_004
