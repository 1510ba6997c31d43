"""Repeated publishes: recognised by their bytes, and handled as if each were read frame by frame."""

from collections.abc import Sequence
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands

from gateway.api import Interceptor, Message, Origin, Refusal
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import Publication, Sent, content_header, frame, publish, wire

GONE = "Channel.Close 404 NOT_FOUND - no exchange 'x' in vhost '/' (60,40)"


def consuming(gateway: Gateway, *queues: str) -> Peer:
    """Return a client that consumes these queues on one channel."""
    peer = gateway.connect()
    for name in queues:
        peer.send(commands.Queue.Declare(0, name), commands.Basic.Consume(0, name, f"c-{name}", no_ack=True))
    peer.receive()
    return peer


def bodies(peer: Peer) -> list[bytes]:
    return [received.body for received in peer.receive_frames()]


def numbered(count: int, key: str = "q") -> list[Sent]:
    return [publish("", key, b"%04d" % number) for number in range(count)]


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


#: Properties: none, delivery mode 1 and 2, and a user, who is checked at each publish.
NOTHING, TRANSIENT, PERSISTENT, USER = b"\0\0", b"\x10\0\1", b"\x10\0\2", b"\0\x10\5guest"

PUBLISHES: st.SearchStrategy[Publication] = st.builds(
    lambda key, body, raw: publish("", key, body, raw=raw),
    st.sampled_from(["q", "q", "q", "r"]),
    st.sampled_from([b"", b"one", b"two", b"three"]),
    st.sampled_from([NOTHING, NOTHING, TRANSIENT, PERSISTENT, USER]),
)


#: Publishes that repeat a few times each, as those of most clients.
RUNS = st.lists(st.tuples(PUBLISHES, st.integers(1, 4)), max_size=6).map(
    lambda runs: [publication for publication, count in runs for _ in range(count)]
)


@given(sent=RUNS, places=st.lists(st.integers(0, 2000), max_size=6))
@settings(max_examples=100, deadline=None)
def test_messages_arrive_unchanged_and_in_order_wherever_the_bytes_are_cut(
    sent: list[Publication], places: Sequence[int]
) -> None:
    gateway = Gateway()
    consumer, publisher = consuming(gateway, "q", "r"), gateway.connect()
    data = wire(*sent)
    cuts = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    for start, end in pairwise(cuts):
        publisher.send(data[start:end])
    received = [(frame.body, frame.properties) for frame in consumer.receive_frames()]
    assert received == [(publication.body, publication.properties) for publication in sent]


def test_any_order_of_repeated_whole_and_cut_publishes_arrives_with_its_properties(gateway: Gateway) -> None:
    kinds = [("q", TRANSIENT, False), ("q", TRANSIENT, True), ("r", PERSISTENT, False), ("q", PERSISTENT, False)]
    consumer = consuming(gateway, "q", "r")
    for order in product(kinds, repeat=5):
        publisher = gateway.connect()
        for key, raw, is_cut in order:
            data = wire(publish("", key, raw=raw))
            publisher.send(data[:-4]).send(data[-4:]) if is_cut else publisher.send(data)
        received = [frame.properties for frame in consumer.receive_frames()]
        assert received == [raw for _, raw, _ in order], order
        publisher.lose()


def test_a_repeated_publish_in_pieces_does_not_lend_its_header_to_the_next_one(gateway: Gateway) -> None:
    consumer, publisher = consuming(gateway, "q", "r"), gateway.connect()
    transient = wire(publish("", "q", raw=TRANSIENT))
    publisher.send(transient * 2, transient[:-4]).send(transient[-4:])
    publisher.send(*[publish("", "r", raw=PERSISTENT)] * 2)
    assert [frame.properties for frame in consumer.receive_frames()] == [TRANSIENT] * 3 + [PERSISTENT] * 2


def test_publishes_of_two_channels_are_not_mistaken_for_each_other(gateway: Gateway) -> None:
    consumer, publisher = consuming(gateway, "q"), gateway.connect()
    publisher.send(commands.Channel.Open(), channel=2)
    publisher.send(*numbered(3)).send(*numbered(3), channel=2).send(*numbered(2))
    assert bodies(consumer) == [b"0000", b"0001", b"0002", b"0000", b"0001", b"0002", b"0000", b"0001"]


def test_a_repeated_publish_to_a_deleted_exchange_closes_the_channel(gateway: Gateway) -> None:
    publisher = gateway.connect()
    publisher.send(commands.Exchange.Declare(0, "x", "fanout"), *[publish("x", "k")] * 3).receive()
    gateway.connect().send(commands.Exchange.Delete(0, "x")).receive()
    assert publisher.send(publish("x", "k")).receive() == [GONE]
    assert publisher.send(publish("x", "k")).receive() == [], "a frame on a channel that is closing"


def test_a_reopened_channel_does_not_repeat_the_publishes_of_the_one_before(gateway: Gateway) -> None:
    consumer, publisher = consuming(gateway, "q"), gateway.connect()
    publisher.send(*numbered(3), commands.Channel.Close(200, "", 0, 0))
    assert publisher.send(publish("", "q")).receive() == [
        "Channel.CloseOk()",
        "Connection.Close 504 CHANNEL_ERROR - expected 'channel.open' (60,40)",
    ]
    assert bodies(consumer) == [b"0000", b"0001", b"0002"]


def test_a_publish_between_the_frames_of_another_one_is_unexpected(gateway: Gateway) -> None:
    publisher = gateway.connect()
    whole = publish("", "q", b"body").on(1)
    method = whole[: whole.index(content_header(4))]
    (answer,) = publisher.send(whole * 3, method, whole).receive()
    assert answer.startswith("Connection.Close 505 UNEXPECTED_FRAME")


def test_a_repeated_publish_without_its_end_is_invalid(gateway: Gateway) -> None:
    publisher = gateway.connect()
    whole = publish("", "q", b"body").on(1)
    (answer,) = publisher.send(whole * 3, whole[:-1] + b"\xcd", whole).receive()
    assert answer.startswith("Connection.Close 501 FRAME_ERROR")


class RefusesOdd(Interceptor):
    def on_publish(self, message: Message, origin: Origin) -> Message | Refusal:
        return Refusal("odd") if int(message.body) % 2 else message


def test_interceptors_get_repeated_publishes_from_the_next_one_on(gateway: Gateway) -> None:
    consumer, publisher = consuming(gateway, "q"), gateway.connect()
    publisher.send(*numbered(2))
    gateway.vhost.interception.apply([RefusesOdd()])
    assert publisher.send(*numbered(2)).receive() == ["Channel.Close 406 PRECONDITION_FAILED - odd (60,40)"]
    assert bodies(consumer) == [b"0000", b"0001", b"0000"]


def test_after_a_refused_repetition_the_frames_behind_it_are_read(gateway: Gateway) -> None:
    gateway.vhost.interception.apply([RefusesOdd()])
    consumer, publisher = consuming(gateway, "q"), gateway.connect()
    publisher.send(commands.Channel.Open(), channel=2)
    publisher.receive()
    even = [publish("", "q", b"0002")] * 3
    publisher.send(wire(*even, publish("", "q", b"0003"), *even), wire(publish("", "q", b"0004"), channel=2))
    assert publisher.receive() == ["Channel.Close 406 PRECONDITION_FAILED - odd (60,40)"]
    assert bodies(consumer) == [b"0002"] * 3 + [b"0004"]


def test_repeated_publishes_end_with_the_budget_of_the_turn_and_go_on_later(gateway: Gateway) -> None:
    publisher = gateway.connect()
    publisher.send(*[commands.Queue.Declare(0, name) for name in "qr"])
    publisher.send(*[commands.Queue.Bind(0, name, "amq.fanout", "") for name in "qr"])
    publisher.send(*[publish("amq.fanout", "", b"body")] * 3).receive()
    budget, queue = gateway.broker.journal.budget, gateway.vhost.queue_by_name["q"]
    budget.renew()
    budget.is_spent()
    budget.monotonic_s = lambda: 1e9
    publisher.send(*[publish("amq.fanout", "", b"body")] * 100)
    assert publisher.machine.is_held
    assert len(queue) == 3 + WORK_PER_CLOCK_READING // 2, "each message is a unit of work for each queue"
    budget.renew()
    publisher.machine.receive(b"")
    assert len(queue) == 103


def test_a_user_id_is_checked_at_each_publish(gateway: Gateway) -> None:
    publisher = gateway.connect()
    whole = publish("", "q", user_id="guest")
    publisher.send(*[whole] * 3, publish("", "q", user_id="other"))
    (answer,) = publisher.receive()
    assert answer.startswith("Channel.Close 406 PRECONDITION_FAILED - user_id property")


def test_an_empty_body_repeats_too(gateway: Gateway) -> None:
    consumer, publisher = consuming(gateway, "q"), gateway.connect()
    publisher.send(*[publish("", "q", b"")] * 5, frame(8, 0, b""))
    assert bodies(consumer) == [b""] * 5
