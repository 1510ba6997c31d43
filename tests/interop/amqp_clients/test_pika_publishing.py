"""pika's BlockingConnection: bodies and properties, confirms, returns and transactions."""

from datetime import UTC, datetime
from decimal import Decimal

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    UnroutableError,
)

from tests.interop.amqp_clients.pika_client import fetch, is_empty, publish, wait_for


def test_a_confirmed_message_is_in_the_queue(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    publish(channel, queue, b"safe")
    assert channel.queue_declare(queue, passive=True).method.message_count == 1


def test_a_persistent_message_in_a_durable_queue_is_confirmed(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", name, b"kept", pika.BasicProperties(delivery_mode=2))
    assert fetch(channel, name, 1) == [b"kept"]
    channel.queue_delete(name)


def test_an_unroutable_mandatory_message_is_returned_before_its_confirm(channel: BlockingChannel, name: str) -> None:
    channel.confirm_delivery()
    with pytest.raises(UnroutableError) as unroutable:
        channel.basic_publish("", name, b"nowhere to go", mandatory=True)
    (returned,) = unroutable.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert returned.body == b"nowhere to go"


def test_a_returned_message_keeps_its_properties(channel: BlockingChannel, name: str) -> None:
    returned: list[pika.BasicProperties] = []
    channel.add_on_return_callback(lambda _channel, _method, properties, _body: returned.append(properties))
    channel.basic_publish("", name, b"", pika.BasicProperties(message_id="42"), mandatory=True)
    wait_for(channel.connection, lambda: returned)
    assert returned[0].message_id == "42"


@pytest.mark.parametrize("size", [0, 1, 131_064, 131_065, 1024 * 1024 + 1, 5 * 1024 * 1024])
def test_a_body_of_any_size_is_delivered_unchanged(channel: BlockingChannel, queue: str, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    channel.confirm_delivery()
    publish(channel, queue, body)
    (received,) = fetch(channel, queue, 1)
    assert received == body


def test_every_property_survives(channel: BlockingChannel, queue: str) -> None:
    properties = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="identity",
        headers={"tenant": "acme"},
        delivery_mode=1,
        priority=4,
        correlation_id="c-1",
        reply_to="answers",
        expiration="60000",
        message_id="m-1",
        timestamp=1_700_000_000,
        type="greeting",
        user_id="guest",
        app_id="interop",
    )
    channel.basic_publish("", queue, b"", properties)
    _, received, _ = channel.basic_get(queue, auto_ack=True)
    assert received == properties


def test_headers_of_every_type_pika_writes_survive(channel: BlockingChannel, queue: str) -> None:
    headers = {
        "text": "größer",
        "bytes": b"\x00\xff",
        "true": True,
        "int": -7,
        "long": 2**40,
        "decimal": Decimal("12.345"),
        "timestamp": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        "nothing": None,
        "array": [1, "two", [3, None], {"four": 4}],
        "table": {"nested": {"deeper": [True, False]}},
    }
    channel.basic_publish("", queue, b"", pika.BasicProperties(headers=headers))
    _, received, _ = channel.basic_get(queue, auto_ack=True)
    assert received is not None
    assert received.headers == headers


def test_a_transaction_shows_its_messages_only_when_committed(channel: BlockingChannel, queue: str) -> None:
    observer = channel.connection.channel()
    channel.tx_select()
    publish(channel, queue, b"1", b"2")
    assert is_empty(observer, queue)
    channel.tx_commit()
    assert fetch(observer, queue, 2) == [b"1", b"2"]


def test_a_rolled_back_transaction_publishes_nothing(channel: BlockingChannel, queue: str) -> None:
    channel.tx_select()
    publish(channel, queue, b"regretted")
    channel.tx_rollback()
    channel.tx_commit()
    assert is_empty(channel, queue)


def test_a_rolled_back_acknowledgement_leaves_the_message_unsettled(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, b"mine")
    other = channel.connection.channel()
    other.tx_select()
    method, _, _ = other.basic_get(queue)
    assert method is not None
    other.basic_ack(method.delivery_tag)
    other.tx_rollback()
    other.close()
    assert fetch(channel, queue, 1) == [b"mine"]
