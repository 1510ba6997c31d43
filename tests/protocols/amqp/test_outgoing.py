"""Output: the outbox and its limits, and messages in the same frames as pamqp's."""

import pytest
from pamqp import body as pamqp_body
from pamqp import commands, frame, header
from pamqp.base import Frame

from gateway.kernel.messages.message import Message, Properties
from gateway.net.outbox import HIGH_WATER, Outbox
from gateway.net.turn import TurnParticipant
from gateway_amqp.deliveries import DeliveryWriter
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties

FRAME_MAX = 4096
ROOM = FRAME_MAX - 8


class Woken(TurnParticipant):
    def __init__(self) -> None:
        self.count = 0

    def wake(self) -> None:
        self.count += 1


def taken(outbox: Outbox) -> bytes:
    """Return the whole waiting output as one piece."""
    return b"".join(outbox.take(0)[0])


def test_an_outbox_schedules_one_flush_until_it_was_flushed() -> None:
    woken = Woken()
    outbox = Outbox(woken)
    outbox.write(b"a")
    outbox.write(b"b")
    assert (woken.count, outbox.size, outbox.take(0), outbox.size) == (1, 2, ([b"a", b"b"], 2), 0)
    outbox.is_awake = False
    outbox.write(b"c")
    assert (woken.count, outbox.take(0)) == (2, ([b"c"], 1))


def test_output_that_promises_durability_waits_for_it_and_later_output_waits_too() -> None:
    outbox = Outbox(Woken())
    outbox.write(b"before")
    outbox.promise(3)
    outbox.write(b"three")
    outbox.promise(2)
    outbox.write(b"behind")
    outbox.promise(5)
    outbox.write(b"five")
    assert (outbox.awaited_lsn, outbox.take(2)) == (3, ([b"before"], 6))
    assert (outbox.awaited_lsn, outbox.take(2)) == (3, ([], 0))
    assert (outbox.take(4), outbox.awaited_lsn) == (([b"three", b"behind"], 11), 5)
    assert (outbox.take(5), outbox.awaited_lsn, outbox.size) == (([b"five"], 4), 0, 0)


def test_a_promise_may_include_earlier_output() -> None:
    outbox = Outbox(Woken())
    outbox.write(b"before")
    outbox.promise(2)
    outbox.write(b"two")
    outbox.promise(3)
    outbox.write(b"three")
    outbox.promise(4, since=2)
    outbox.write(b"behind")
    assert outbox.take(1) == ([b"before"], 6)
    assert outbox.take(3) == ([b"two"], 3)
    assert outbox.take(4) == ([b"three", b"behind"], 11)


def test_an_outbox_closes_at_its_limit_and_reports_when_it_opens_again() -> None:
    outbox = Outbox(Woken())
    outbox.write(bytes(HIGH_WATER))
    assert (outbox.update_is_open(), outbox.is_open) == (False, False)
    outbox.take(0)
    assert (outbox.update_is_open(), outbox.is_open) == (True, True)
    assert outbox.update_is_open() is False


def test_a_congested_outbox_stays_closed_even_when_empty() -> None:
    outbox = Outbox(Woken())
    outbox.is_congested = True
    assert (outbox.update_is_open(), outbox.is_open) == (False, False)
    outbox.is_congested = False
    assert (outbox.update_is_open(), outbox.is_open) == (True, True)


def content(channel: int, method: Frame, properties: commands.Basic.Properties, body: bytes) -> bytes:
    """Return the frames of a content, encoded by pamqp."""
    pieces = [body[start : start + ROOM] for start in range(0, len(body), ROOM)]
    return b"".join(
        [
            frame.marshal(method, channel),
            frame.marshal(header.ContentHeader(0, len(body), properties), channel),
            *(frame.marshal(pamqp_body.ContentBody(piece), channel) for piece in pieces),
        ]
    )


SIZES = [0, 1, ROOM - 1, ROOM, ROOM + 1, 3 * ROOM, 3 * ROOM + 5]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channel", [1, 65_535])
def test_a_message_has_the_same_frames_as_pamqps(size: int, channel: int) -> None:
    outbox = Outbox(Woken())
    writer = DeliveryWriter(channel, outbox, FRAME_MAX)
    raw = encode_properties(Properties(content_type="text/plain", headers={"a": "b"}, delivery_mode=2))
    message = Message("an exchange", "a key", AMQP.header(raw), bytes(size))
    properties = commands.Basic.Properties(content_type="text/plain", headers={"a": "b"}, delivery_mode=2)

    for tag in (1, 2, 2**40):  # repeated parts are cached: the first must not differ from the others
        writer.deliver("a tag", tag, tag > 1, message)
        deliver = commands.Basic.Deliver("a tag", tag, tag > 1, "an exchange", "a key")
        assert taken(outbox) == content(channel, deliver, properties, bytes(size))
    writer.get_ok(7, True, message, 3)
    get_ok = commands.Basic.GetOk(7, True, "an exchange", "a key", 3)
    assert taken(outbox) == content(channel, get_ok, properties, bytes(size))
    writer.returned(312, "NO_ROUTE", message)
    returned = commands.Basic.Return(312, "NO_ROUTE", "an exchange", "a key")
    assert taken(outbox) == content(channel, returned, properties, bytes(size))


def test_repeated_deliveries_have_the_same_frames_as_pamqps() -> None:
    outbox = Outbox(Woken())
    writer = DeliveryWriter(1, outbox, FRAME_MAX)
    properties = commands.Basic.Properties(content_type="text/plain")
    header_ = AMQP.header(encode_properties(Properties(content_type="text/plain")))
    keys = ["a", "b"]
    deliveries = [(tag, "c", "a", False, b"%04d" % tag) for tag in range(250, 260)]  # the second octet changes
    deliveries += [
        (tag, ("c", "d")[tag & 1], keys[tag >> 1 & 1], tag % 5 == 0, bytes(tag % 7)) for tag in range(260, 330)
    ]
    deliveries += [(tag, "d", "b", tag == 332, b"same") for tag in range(330, 336)]
    for tag, consumer_tag, key, redelivered, body in deliveries:
        key = keys[keys.index(key)]
        writer.deliver(consumer_tag, tag, redelivered, Message("x", key, header_, body))
        deliver = commands.Basic.Deliver(consumer_tag, tag, redelivered, "x", key)
        assert taken(outbox) == content(1, deliver, properties, body)


def test_the_cache_of_repeated_parts_is_limited() -> None:
    outbox = Outbox(Woken())
    writer = DeliveryWriter(1, outbox, FRAME_MAX)
    header_ = AMQP.header(encode_properties(Properties()))
    for number in range(2000):
        writer.deliver("c", number, False, Message("", f"key {number}", header_, bytes(number)))
        outbox.take(0)
    assert len(writer._methods) <= 256
    assert len(writer._heads) <= 256


def test_deliveries_close_the_outbox_at_its_limit() -> None:
    outbox = Outbox(Woken())
    writer = DeliveryWriter(1, outbox, 131_072)
    message = Message("", "q", AMQP.header(encode_properties(Properties())), bytes(100_000))
    count = 0
    while outbox.is_open:
        writer.deliver("c", count, False, message)
        count += 1
    assert count == HIGH_WATER // 100_000 + 1
