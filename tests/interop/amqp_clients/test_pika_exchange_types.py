"""The exchange types of RabbitMQ's plugins over pika."""

from collections.abc import Mapping

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from tests.interop.amqp_clients.pika_client import fetch


def bound_queues(channel: BlockingChannel, exchange: str, keys: list[str]) -> list[str]:
    """Bind an exclusive queue for each key; return their names."""
    queues = [channel.queue_declare("", exclusive=True).method.queue for _ in keys]
    for queue, key in zip(queues, keys, strict=True):
        channel.queue_bind(queue, exchange, key)
    return queues


def counts(channel: BlockingChannel, queues: list[str]) -> list[int]:
    return [channel.queue_declare(queue, passive=True).method.message_count for queue in queues]


@pytest.fixture
def confirming(channel: BlockingChannel) -> BlockingChannel:
    channel.confirm_delivery()
    return channel


HASHED = [
    pytest.param({}, lambda n: (str(n), {}), id="routing key"),
    pytest.param({"hash-header": "customer"}, lambda n: ("", {"headers": {"customer": n}}), id="header"),
    pytest.param({"hash-property": "message_id"}, lambda n: ("", {"message_id": str(n)}), id="message_id"),
    pytest.param({"hash-property": "correlation_id"}, lambda n: ("", {"correlation_id": str(n)}), id="correlation_id"),
    pytest.param({"hash-property": "timestamp"}, lambda n: ("", {"timestamp": n}), id="timestamp"),
]


@pytest.mark.parametrize(("arguments", "numbered"), HASHED)
def test_a_consistent_hash_shares_messages_by_weight(
    confirming: BlockingChannel, name: str, arguments: Mapping[str, str], numbered: object
) -> None:
    confirming.exchange_declare(name, "x-consistent-hash", auto_delete=True, arguments=arguments)
    queues = bound_queues(confirming, name, ["1", "3"])
    for number in range(200):
        key, properties = numbered(number)  # type: ignore[operator]  # a function of the table
        for _ in range(2):
            confirming.basic_publish(name, key, b"", pika.BasicProperties(**properties), mandatory=True)
    light, heavy = counts(confirming, queues)
    assert light + heavy == 400
    assert light % 2 == 0, "a repeated value reached another queue"
    assert 50 <= light <= 150


REFUSED = [
    pytest.param({}, "one", 'PRECONDITION_FAILED - The binding key must be an integer: <<"one">>', id="no number"),
    pytest.param({}, "0", "PRECONDITION_FAILED - The binding key must be greater than 0", id="zero"),
    pytest.param({"hash-property": "type"}, "1", "PRECONDITION_FAILED - Unsupported property: type", id="property"),
    pytest.param({"hash-property": "message_id", "hash-header": "h"}, "1",
                 "PRECONDITION_FAILED - hash-header and hash-property are mutually exclusive", id="both"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "key", "text"), REFUSED)
def test_a_consistent_hash_refuses_as_rabbitmq_does(
    channel: BlockingChannel, name: str, arguments: Mapping[str, str], key: str, text: str
) -> None:
    def declare_and_bind() -> None:
        channel.exchange_declare(name, "x-consistent-hash", auto_delete=True, arguments=arguments)
        bound_queues(channel, name, [key])

    with pytest.raises(ChannelClosedByBroker) as closed:
        declare_and_bind()
    assert (closed.value.reply_code, closed.value.reply_text) == (406, text)


@pytest.mark.parametrize(
    ("type", "key"), [("x-random", "any"), ("x-local-random", ""), ("x-modulus-hash", ""), ("x-consistent-hash", "1")]
)
def test_each_message_reaches_one_of_the_queues(confirming: BlockingChannel, name: str, type: str, key: str) -> None:
    confirming.exchange_declare(name, type, auto_delete=True)
    queues = bound_queues(confirming, name, [key] * 3)
    for number in range(120):
        confirming.basic_publish(name, f"k{number}", b"", mandatory=True)
    found = counts(confirming, queues)
    assert sum(found) == 120
    assert min(found) > 10


def test_rtopic_routes_by_the_pattern_of_the_publisher(confirming: BlockingChannel, name: str) -> None:
    confirming.exchange_declare(name, "x-rtopic", auto_delete=True)
    queues = bound_queues(confirming, name, ["eu.de.berlin", "eu.fr", "us.ny"])
    for key in ("eu.#", "*.ny", "eu.fr"):
        confirming.basic_publish(name, key, key.encode())
    assert [
        fetch(confirming, queue, count) for queue, count in zip(queues, counts(confirming, queues), strict=True)
    ] == [
        [b"eu.#"],
        [b"eu.#", b"eu.fr"],
        [b"*.ny"],
    ]


def test_a_jms_topic_routes_by_selectors(confirming: BlockingChannel, name: str) -> None:
    confirming.exchange_declare(name, "x-jms-topic", auto_delete=True)
    queue = confirming.queue_declare("", exclusive=True).method.queue
    confirming.queue_bind(queue, name, "", {"x-jms-selector": "price < 100"})
    for price in (99, 100):
        confirming.basic_publish(name, "", str(price).encode(), pika.BasicProperties(headers={"price": price}))
    assert fetch(confirming, queue, 1) == [b"99"]
    assert counts(confirming, [queue]) == [0]


def test_a_recent_history_is_handed_to_a_new_queue(confirming: BlockingChannel, name: str) -> None:
    confirming.exchange_declare(name, "x-recent-history", arguments={"x-recent-history-length": 2})
    for body in (b"1", b"2", b"3"):
        confirming.basic_publish(name, "k", body)
    confirming.basic_publish(name, "k", b"4", pika.BasicProperties(headers={"x-recent-history-no-store": True}))
    (queue,) = bound_queues(confirming, name, ["any"])
    confirming.basic_publish(name, "k", b"5")
    assert fetch(confirming, queue, 3) == [b"2", b"3", b"5"]
    confirming.exchange_delete(name)


def test_a_history_length_is_refused_as_rabbitmq_does(channel: BlockingChannel, name: str) -> None:
    with pytest.raises(ChannelClosedByBroker) as closed:
        channel.exchange_declare(name, "x-recent-history", arguments={"x-recent-history-length": -1})
    text = "PRECONDITION_FAILED - Invalid argument -1, 'x-recent-history-length' must be a positive integer"
    assert (closed.value.reply_code, closed.value.reply_text) == (406, text)


def test_a_last_value_is_handed_to_a_new_queue(confirming: BlockingChannel, name: str) -> None:
    confirming.exchange_declare(name, "x-lvc")
    for key, body in (("a", b"1"), ("a", b"2"), ("b", b"3")):
        confirming.basic_publish(name, key, body)
    queues = bound_queues(confirming, name, ["a", "b", "c"])
    assert [fetch(confirming, queue, count) for queue, count in zip(queues, [1, 1, 0], strict=True)] == [
        [b"2"],
        [b"3"],
        [],
    ]
    confirming.exchange_delete(name)
