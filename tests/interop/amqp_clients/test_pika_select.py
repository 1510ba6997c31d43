"""pika's SelectConnection: callbacks on one loop, requests in flight while messages arrive."""

from collections.abc import Generator
from typing import Any

import pika
import pytest
from pika.channel import Channel
from pika.exceptions import ChannelClosedByBroker

from tests.interop.broker import Broker
from tests.interop.conversation import Conversation, Step

Steps = Generator[Step, Any, None]


def declare(channel: Channel, queue: str) -> Step:
    return lambda resume: channel.queue_declare(queue, exclusive=True, callback=resume)


def confirm(channel: Channel, confirmed: list[int]) -> Step:
    """Enable confirms and collect the confirmed delivery tags."""

    def note(frame: Any) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        first = frame.method.delivery_tag if not frame.method.multiple else len(confirmed) + 1
        confirmed.extend(range(first, frame.method.delivery_tag + 1))

    return lambda resume: channel.confirm_delivery(note, callback=resume)


def get(channel: Channel, queue: str) -> Step:
    return lambda resume: channel.basic_get(queue, lambda *got: resume(got[1:]), auto_ack=False)


def pause(channel: Channel, seconds: float = 0.2) -> Step:
    return lambda resume: channel.connection.ioloop.call_later(seconds, resume)


def test_every_publish_is_confirmed_once(broker: Broker, name: str) -> None:
    confirmed: list[int] = []

    def dialogue(channel: Channel) -> Steps:
        yield declare(channel, name)
        yield confirm(channel, confirmed)
        for number in range(100):
            channel.basic_publish("", name, b"%d" % number)
        while len(confirmed) < 100:
            yield pause(channel, 0.02)
        declared = yield declare(channel, name)
        assert declared.method.message_count == 100

    Conversation(broker, dialogue).run()
    assert sorted(confirmed) == list(range(1, 101))


def test_deliveries_arrive_in_order_and_are_acknowledged(broker: Broker, name: str) -> None:
    arrived: list[bytes] = []

    def deliver(channel: Channel, method: Any, _properties: object, body: bytes) -> None:
        arrived.append(body)
        channel.basic_ack(method.delivery_tag)

    def dialogue(channel: Channel) -> Steps:
        yield declare(channel, name)
        yield lambda resume: channel.basic_consume(name, deliver, callback=resume)
        for number in range(100):
            channel.basic_publish("", name, b"%d" % number)
        while len(arrived) < 100:
            yield pause(channel, 0.02)

    Conversation(broker, dialogue).run()
    assert arrived == [b"%d" % number for number in range(100)]


def test_a_nacked_message_is_redelivered(broker: Broker, name: str) -> None:
    def dialogue(channel: Channel) -> Steps:
        yield declare(channel, name)
        channel.basic_publish("", name, b"again")
        method, _, _ = yield get(channel, name)
        channel.basic_nack(method.delivery_tag, requeue=True)
        method, _, body = yield get(channel, name)
        assert (method.redelivered, body) == (True, b"again")

    Conversation(broker, dialogue).run()


def test_qos_limits_unacknowledged_messages(broker: Broker, name: str) -> None:
    tags: list[int] = []

    def dialogue(channel: Channel) -> Steps:
        yield declare(channel, name)
        yield lambda resume: channel.basic_qos(prefetch_count=3, callback=resume)
        for _ in range(10):
            channel.basic_publish("", name, b"")
        yield lambda resume: channel.basic_consume(
            name, lambda _channel, method, *_: tags.append(method.delivery_tag), callback=resume
        )
        yield pause(channel)
        assert len(tags) == 3
        channel.basic_ack(tags[-1], multiple=True)
        yield pause(channel)
        assert len(tags) == 6

    Conversation(broker, dialogue).run()


def test_a_cancelled_consumer_receives_nothing_more(broker: Broker, name: str) -> None:
    arrived: list[bytes] = []

    def dialogue(channel: Channel) -> Steps:
        yield declare(channel, name)
        consuming = yield lambda resume: channel.basic_consume(
            name, lambda *delivery: arrived.append(delivery[-1]), callback=resume
        )
        yield lambda resume: channel.basic_cancel(consuming.method.consumer_tag, callback=resume)
        channel.basic_publish("", name, b"late")
        _, _, body = yield get(channel, name)
        assert body == b"late"

    Conversation(broker, dialogue).run()
    assert arrived == []


def test_the_broker_cancels_the_consumer_of_a_deleted_queue(broker: Broker, name: str) -> None:
    def dialogue(channel: Channel) -> Steps:
        yield declare(channel, name)
        cancelled: list[Any] = []
        channel.add_on_cancel_callback(cancelled.append)
        consuming = yield lambda resume: channel.basic_consume(name, lambda *_: None, callback=resume)
        yield lambda resume: channel.queue_delete(name, callback=resume)
        while not cancelled:
            yield pause(channel, 0.02)
        assert cancelled[0].method.consumer_tag == consuming.method.consumer_tag

    Conversation(broker, dialogue).run()


def test_an_exclusive_queue_is_locked_for_a_second_connection(broker: Broker, name: str) -> None:
    def intrude(channel: Channel) -> Steps:
        with pytest.raises(ChannelClosedByBroker) as closed:
            yield declare(channel, name)
        assert closed.value.reply_code == 405

    def own(channel: Channel) -> Steps:
        yield declare(channel, name)
        Conversation(broker, intrude).run()

    Conversation(broker, own).run()


def test_a_transaction_is_committed_or_rolled_back(broker: Broker, name: str) -> None:
    def dialogue(channel: Channel) -> Steps:
        yield declare(channel, name)
        yield lambda resume: channel.tx_select(callback=resume)
        channel.basic_publish("", name, b"discarded")
        yield lambda resume: channel.tx_rollback(callback=resume)
        channel.basic_publish("", name, b"kept")
        yield lambda resume: channel.tx_commit(callback=resume)
        declared = yield declare(channel, name)
        assert declared.method.message_count == 1
        _, _, body = yield get(channel, name)
        assert body == b"kept"

    Conversation(broker, dialogue).run()


def test_an_unroutable_mandatory_message_is_returned(broker: Broker, name: str) -> None:
    def dialogue(channel: Channel) -> Steps:
        returned: list[tuple[Any, ...]] = []
        channel.add_on_return_callback(lambda *parts: returned.append(parts))
        channel.basic_publish("", name, b"nowhere to go", mandatory=True)
        while not returned:
            yield pause(channel, 0.02)
        _, method, _, body = returned[0]
        assert (method.reply_code, method.reply_text, body) == (312, "NO_ROUTE", b"nowhere to go")

    Conversation(broker, dialogue).run()
