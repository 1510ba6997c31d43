"""pika's BlockingConnection: exchanges of every type, bindings between them, copies and replies."""

from collections.abc import Callable
from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import (
    ChannelClosedByBroker,
    UnroutableError,
)

from tests.interop.amqp_clients.pika_client import fetch, is_empty, wait_for

Connect = Callable[..., BlockingConnection]

REPLY_TO: Final = "amq.rabbitmq.reply-to"


@pytest.mark.parametrize(
    ("kind", "binding_key", "matching", "other"),
    [
        ("direct", "dog", "dog", "dog.puppy"),
        ("topic", "*.stock.#", "us.stock.nyse.ibm", "us.bond.nyse"),
        ("fanout", "ignored", "anything", None),
    ],
)
def test_an_exchange_routes_by_its_type(
    channel: BlockingChannel, name: str, queue: str, kind: str, binding_key: str, matching: str, other: str | None
) -> None:
    exchange = f"{name}-exchange"
    channel.exchange_declare(exchange, kind, auto_delete=True)
    channel.queue_bind(queue, exchange, binding_key)
    channel.confirm_delivery()
    channel.basic_publish(exchange, matching, b"match", mandatory=True)
    if other is not None:
        with pytest.raises(UnroutableError):
            channel.basic_publish(exchange, other, b"no match", mandatory=True)
    assert fetch(channel, queue, 1) == [b"match"]


@pytest.mark.parametrize(
    ("match", "headers", "is_routed"),
    [
        ("all", {"format": "pdf", "pages": 3}, True),
        ("all", {"format": "pdf"}, False),
        ("any", {"format": "pdf"}, True),
        ("any", {"format": "odt"}, False),
    ],
)
def test_a_headers_exchange_matches_all_or_any(
    channel: BlockingChannel, queue: str, match: str, headers: dict[str, object], is_routed: bool
) -> None:
    channel.queue_bind(queue, "amq.headers", "", {"x-match": match, "format": "pdf", "pages": 3})
    channel.confirm_delivery()
    channel.basic_publish("amq.headers", "", b"page", pika.BasicProperties(headers=headers))
    assert is_empty(channel, queue) is not is_routed


def test_an_exchange_can_be_bound_to_an_exchange(channel: BlockingChannel, name: str, queue: str) -> None:
    source, destination = f"{name}-source", f"{name}-destination"
    channel.exchange_declare(source, "topic", auto_delete=True)
    channel.exchange_declare(destination, "fanout", auto_delete=True)
    channel.queue_bind(queue, destination)
    channel.exchange_bind(destination, source, "a.#")
    channel.basic_publish(source, "a.b", b"through both")
    assert fetch(channel, queue, 1) == [b"through both"]
    channel.exchange_unbind(destination, source, "a.#")
    channel.confirm_delivery()
    with pytest.raises(ChannelClosedByBroker) as closed:  # the source was deleted with its last binding
        channel.basic_publish(source, "a.b", b"")
    assert closed.value.reply_code == 404


def test_an_unroutable_message_goes_to_the_alternate_exchange(channel: BlockingChannel, name: str, queue: str) -> None:
    alternate, exchange = f"{name}-alternate", f"{name}-exchange"
    channel.exchange_declare(alternate, "fanout", auto_delete=True)
    channel.queue_bind(queue, alternate)
    channel.exchange_declare(exchange, "direct", arguments={"alternate-exchange": alternate})
    channel.confirm_delivery()
    channel.basic_publish(exchange, "unknown", b"lost and found", mandatory=True)
    assert fetch(channel, queue, 1) == [b"lost and found"]
    channel.exchange_delete(exchange)


def test_a_sender_can_select_further_queues(channel: BlockingChannel) -> None:
    first, copied, blind = (channel.queue_declare("", exclusive=True).method.queue for _ in range(3))
    headers = {"CC": [copied], "BCC": [blind]}
    channel.basic_publish("", first, b"for three", pika.BasicProperties(headers=headers))
    for queue in (first, copied, blind):
        _, properties, body = channel.basic_get(queue, auto_ack=True)
        assert properties is not None
        assert (body, properties.headers) == (b"for three", {"CC": [copied]})


def test_a_direct_reply_is_sent_to_the_requester(connect: Connect, channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, auto_delete=True)
    replies: list[bytes] = []
    channel.basic_consume(REPLY_TO, lambda *delivery: replies.append(delivery[-1]), auto_ack=True)
    channel.basic_publish("", name, b"question", pika.BasicProperties(reply_to=REPLY_TO))

    server = connect().channel()
    _, properties, _ = server.basic_get(name, auto_ack=True)
    assert properties is not None
    assert properties.reply_to.startswith(f"{REPLY_TO}.")
    server.basic_publish("", properties.reply_to, b"answer")
    wait_for(channel.connection, lambda: replies == [b"answer"])
    server.queue_delete(name)
