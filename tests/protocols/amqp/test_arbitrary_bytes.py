"""Arbitrary bytes, cut anywhere: the same answers, no exception, bounded memory, no effect on other connections."""

from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pamqp import commands

from gateway_amqp.state import State
from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.effort import examples
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import Sent, asked, content_header, frame, handshake, publish, start_ok, wire

QUEUE = asked(commands.Queue.Declare, queue="q")

#: A conversation with many kinds of frames.
CONVERSATION = wire(
    *handshake(frame_max=4096),
    QUEUE,
    commands.Confirm.Select(),
    publish("", "q", b""),
    publish("", "q", b"hello", delivery_mode=2, headers={"a": [1, {"b": None}]}),
    publish("", "q", bytes(9000), pieces=4000),
    publish("", "nowhere", b"back", mandatory=True),
    asked(commands.Basic.Get, queue="q"),
    asked(commands.Basic.Get, queue="q", no_ack=True),
    frame(8, 0, b""),
    commands.Basic.Ack(1, False),
    publish("nosuch", "q"),
    publish("", "q", b"not done any more"),
    commands.Channel.CloseOk(),
    commands.Channel.Open(),
    asked(commands.Basic.Get, queue="q"),
    commands.Basic.Nack(1, False, True),
    commands.Connection.Close(200, "bye", 0, 0),
)


def answers(*pieces: bytes) -> list[str]:
    """Return the answers to these pieces, one turn each; consecutive confirms may be one or several."""
    peer = Peer(Gateway())
    received: list[str] = []
    for piece in pieces:
        received += peer.send(piece).receive()
    return [line for line in received if not line.startswith("Basic.Ack")]


WHOLE = answers(CONVERSATION)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(places), len(data)]
    return [data[start:stop] for start, stop in pairwise(ends) if stop > start]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(0, len(CONVERSATION)), max_size=40))
def test_answers_do_not_depend_on_how_the_bytes_are_cut(places: list[int]) -> None:
    assert answers(*cut(CONVERSATION, places)) == WHOLE


def test_answers_are_the_same_for_single_bytes() -> None:
    assert answers(*(CONVERSATION[i : i + 1] for i in range(len(CONVERSATION)))) == WHOLE


def test_the_conversation_has_the_expected_answers() -> None:
    assert len(WHOLE) == 14
    assert WHOLE[-2:] == ["Connection.CloseOk()", "EOF"]


# ---------------------------------------------------------------- garbage

STAGES: list[list[Sent]] = [
    [],
    [PROTOCOL_HEADER],
    [PROTOCOL_HEADER, start_ok("\0guest\0guest")],
    [*handshake()][:3],
    [*handshake()][:4],
    [*handshake()],
    [*handshake(), commands.Basic.Publish(0, "", "q")],
    [*handshake(), commands.Basic.Publish(0, "", "q"), content_header(100)],
    [*handshake(), publish("nosuch", "")],
    [*handshake(), commands.Confirm.Select(), asked(commands.Basic.Consume, queue="shared", consumer_tag="c")],
    [*handshake(), commands.Tx.Select()],
]

METHODS = [
    (class_id, method_id) for class_id in (10, 20, 30, 40, 50, 60, 85, 90, 99) for method_id in range(0, 121, 10)
]

#: Frames that are nearly valid: class and method exist, the arguments are arbitrary.
plausible = st.builds(
    lambda kind, channel, ids, rest: frame(kind, channel, ids[0].to_bytes(2, "big") + ids[1].to_bytes(2, "big") + rest),
    st.sampled_from([1, 1, 1, 1, 2, 3, 8]),
    st.sampled_from([0, 1, 1, 1, 2, 65_535]),
    st.sampled_from(METHODS),
    st.binary(max_size=60) | st.binary(max_size=12).map(lambda tail: b"\0\0\1q\1q" + tail),
)
garbage = st.lists(st.binary(max_size=200) | plausible, max_size=8)

#: The largest frame, and one read beyond it.
KEPT_AT_MOST = 131_072 + 65_536


def kept(peer: Peer) -> int:
    """Return the number of input bytes that the machine keeps."""
    return peer.machine._incoming.size


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(STAGES), garbage)
def test_any_bytes_in_any_state_raise_no_exception(stage: list[Sent], pieces: list[bytes]) -> None:
    gateway = Gateway()
    witness = gateway.connect()
    witness.send(asked(commands.Queue.Declare, queue="shared"), publish("", "shared", b"kept")).receive()
    peer = Peer(gateway)
    peer.send(*stage)
    for piece in pieces:
        peer.send(piece)
        assert kept(peer) <= KEPT_AT_MOST
        gateway.settle()
    peer.lose()
    assert not peer.machine.channels.open_by_number
    witness.send(QUEUE, publish("", "q", b"alive"), asked(commands.Basic.Get, queue="q", no_ack=True))
    assert witness.receive()[-1].endswith("b'alive'")


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, len(CONVERSATION) - 1), st.integers(1, 255))
def test_a_flipped_bit_raises_no_exception(place: int, flip: int) -> None:
    damaged = bytearray(CONVERSATION)
    damaged[place] ^= flip
    gateway = Gateway()
    peer = Peer(gateway)
    peer.send(bytes(damaged))
    gateway.settle()
    peer.lose()
    assert gateway.connect().machine.state is State.OPEN


def test_a_frame_of_4_gib_is_refused_at_its_head() -> None:
    peer = Gateway().connect()
    peer.send(b"\3\0\1\xff\xff\xff\xff")
    peer.send(b"x")
    [answer] = peer.receive()
    assert "frame_too_large,4294967295" in answer
    for _ in range(100):
        peer.send(bytes(65_536))
        assert kept(peer) <= KEPT_AT_MOST


def test_an_unfinished_body_uses_no_more_memory_than_announced() -> None:
    peer = Gateway(max_message_size=100_000).connect()
    peer.send(commands.Basic.Publish(0, "", "q"), content_header(100_000))
    for _ in range(100):
        peer.send(frame(3, 1, bytes(1000)))
    assert peer.receive() == []
    peer.send(frame(3, 1, b"x"))
    assert "UNEXPECTED_FRAME" in peer.receive()[0]


def test_the_number_of_channels_is_limited() -> None:
    peer = Gateway().connect(channel_max=100)
    for number in range(2, 200):
        peer.send(commands.Channel.Open(), channel=number)
    assert not peer.machine.channels.open_by_number
    assert peer.machine.state is State.CLOSING
