"""Arbitrary bytes in any state raise no exception, use bounded memory and do not affect other clients."""

from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway_mqtt.state import State
from tests.effort import examples
from tests.protocols.mqtt.client_packets import text
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.frame_reader import FrameReader
from tests.protocols.mqtt.packets import (
    FIVE,
    FOUR,
    THREE,
    Will,
    packet,
    session_expiry,
    topic_alias_maximum,
    varint,
)

_LASTING: Final = session_expiry(100) + topic_alias_maximum(3)

#: The packets sent before the arbitrary bytes, with their version.
STAGES: Final = [
    b"",
    FIVE.connect("x"),
    FOUR.connect("x", is_clean=False),
    THREE.connect("x"),
    FIVE.connect("x", properties=_LASTING, is_clean=False, will=Will("shared", b"gone", 2, True)),
    FIVE.connect("x") + FIVE.subscribe(("#", 2), ("$share/g/shared", 1)),
    FIVE.connect("x", properties=_LASTING) + FIVE.subscribe(("t", 2)) + FIVE.publish("t", b"hi", qos=2, id=1),
    FIVE.connect("x", properties=_LASTING) + FIVE.publish("t", b"hi", qos=2, id=1) + FIVE.pubrel(1),
    FOUR.connect("x") + FOUR.subscribe(("t", 1)) + FOUR.publish("t", b"hi", qos=1, id=1) + FOUR.publish("t")[:3],
    FIVE.connect("x") + FIVE.disconnect(),
]

_SHORT: Final = st.binary(max_size=40)
_TOPICS: Final = st.sampled_from(["t", "shared", "a/+", "#", "$SYS/x", "$share/g/t", "", "\ufeff", "a\0b"]).map(text)
_IDS: Final = st.sampled_from([b"\0\0", b"\0\1", b"\0\2", b"\xff\xff"])
_BODIES: Final = (
    _SHORT
    | st.builds(lambda first, rest: first + rest, _TOPICS | _IDS, _SHORT)
    | st.builds(lambda topic, packet_id, rest: topic + packet_id + b"\0" + rest, _TOPICS, _IDS, _SHORT)
    | st.builds(lambda packet_id, topic, rest: packet_id + b"\0" + topic + rest, _IDS, _TOPICS, _SHORT)
    | st.builds(lambda packet_id, topic, rest: packet_id + topic + rest, _IDS, _TOPICS, _SHORT)
)

#: Packets with valid types, flags and beginnings.
_PLAUSIBLE: Final = st.builds(
    packet,
    st.sampled_from([0x10, 0x30, 0x31, 0x32, 0x34, 0x3D, 0x40, 0x50, 0x62, 0x70, 0x82, 0xA2, 0xC0, 0xE0, 0xF0])
    | st.integers(0, 255),
    _BODIES,
)
_GARBAGE: Final = st.lists(_PLAUSIBLE | st.binary(max_size=100), max_size=8)

#: The limit of buffered bytes before the login, including the read that exceeds it.
KEPT_AT_MOST: Final = 128 * 1024


class UnknownVersionClient(Client):
    """A client whose bytes select the version of the answers; the answers are valid in any version."""

    def take(self, data: bytes) -> None:
        """Receive output of the machine."""
        assert isinstance(self._reader, FrameReader)
        self._reader.version = self.machine.version or 4  # 3.1.1 before CONNECT, see ``connect_version``
        super().take(data)


def witnessed(gateway: Gateway) -> Client:
    """Return a client that is subscribed to ``shared``."""
    witness = gateway.client("witness", expiry=100)
    assert witness.subscribe("shared/witness", 2) == ["SUBACK #1 2"]
    return witness


def still_served(gateway: Gateway, witness: Client) -> None:
    """Check that other clients are not affected."""
    speaker = gateway.client("speaker")
    answer = speaker.publish("shared/witness", b"alive", qos=2, id=1)
    assert answer in (["PUBREC #1"], ["PUBREC #1 NO_MATCHING_SUBSCRIBERS"])
    assert [line for line in witness.receive() if "'alive'" in line] == ["PUBLISH q2 #1 shared/witness 'alive'"]


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(STAGES), _GARBAGE)
def test_arbitrary_bytes_in_any_state_are_handled(stage: bytes, pieces: list[bytes]) -> None:
    gateway = Gateway()
    witness = witnessed(gateway)
    client = UnknownVersionClient(gateway)
    client.machine.receive(stage)
    for piece in pieces:
        client.machine.receive(piece)
        incoming = client.machine._incoming
        assert incoming is None or incoming.size <= KEPT_AT_MOST
        gateway.end_turn()
    gateway.settle()
    client.lose()
    assert client.machine.state is State.CLOSED
    still_served(gateway, witness)
    assert {session.client_id for session in gateway.crashed().vhost.sessions} >= {"witness"}


CONVERSATION: Final = (
    FIVE.connect("x", properties=_LASTING)
    + FIVE.subscribe(("t/#", 2), ("$share/g/u", 1), id=9)
    + FIVE.publish("t/1", b"one", qos=1, id=1, retain=True)
    + FIVE.publish("t/2", b"two", qos=2, id=2)
    + FIVE.puback(1)
    + FIVE.pubrec(2)
    + FIVE.pubrel(2)
    + FIVE.pubcomp(2)
    + FIVE.unsubscribe("t/#", id=10)
    + FIVE.pingreq()
    + FIVE.disconnect(4)
)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, len(CONVERSATION) - 1), st.integers(1, 255))
def test_a_flipped_bit_is_handled(place: int, flip: int) -> None:
    damaged = bytearray(CONVERSATION)
    damaged[place] ^= flip
    gateway = Gateway()
    witness = witnessed(gateway)
    client = UnknownVersionClient(gateway)
    client.machine.receive(bytes(damaged))
    gateway.settle()
    client.lose()
    still_served(gateway, witness)


def test_too_many_bytes_before_the_login_close_the_connection() -> None:
    gateway = Gateway()
    client = gateway.new_client()
    client.machine.receive(b"\x10" + varint(1_000_000) + bytes(1000))
    assert client.receive()[-1] == "closed"
    assert client.machine._incoming is None
