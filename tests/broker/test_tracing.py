"""RabbitMQ's firehose, enabled by a setting, as a client sees it."""

from collections.abc import Callable
from itertools import permutations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.broker.conftest import Connect
from tests.interop.amqp_clients.pika_client import fetch, is_empty
from tests.management_client import put, request
from tests.running import Gateway

TRACE = "amq.rabbitmq.trace"
TRACED = 'vhosts."/".tracing=true'


def test_published_and_delivered_messages_are_copied(gateway: Gateway, connect: Connect) -> None:
    gateway.start(TRACED)
    channel = connect().channel()
    channel.queue_declare("q")
    channel.queue_declare("trace", exclusive=True)
    channel.queue_bind("trace", "amq.rabbitmq.trace", "#")
    channel.basic_publish("amq.direct", "nowhere", b"lost")
    channel.basic_publish("", "q", b"seen", pika.BasicProperties(content_type="text/plain", headers={"a": 1}))
    assert channel.basic_get("q", auto_ack=True)[2] == b"seen"

    copies = [channel.basic_get("trace", auto_ack=True) for _ in range(3)]
    assert is_empty(channel, "trace")
    assert [method.routing_key for method, _, _ in copies] == ["publish.amq.direct", "publish.", "deliver.q"]
    assert [body for _, _, body in copies] == [b"lost", b"seen", b"seen"]
    lost, published, delivered = (properties.headers for _, properties, _ in copies)
    assert lost["routed_queues"] == []
    assert published["routed_queues"] == ["q"]
    assert published["routing_keys"] == ["q"]
    assert published["properties"] == {"content_type": "text/plain", "headers": {"a": 1}}
    assert (published["user"], published["vhost"], published["channel"]) == ("guest", "/", 1)
    assert delivered["redelivered"] == 0


def test_nothing_is_copied_unless_tracing_is_enabled(gateway: Gateway, connect: Connect) -> None:
    gateway.start(TRACED)
    gateway.stop()
    gateway.start('vhosts."/".tracing=false')
    channel = connect().channel()
    channel.queue_declare("trace", exclusive=True)
    channel.queue_bind("trace", "amq.rabbitmq.trace", "#")
    channel.queue_declare("q")
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"private")
    assert is_empty(channel, "trace")


def switch(gateway: Gateway, is_on: bool) -> None:
    """Enable or disable tracing, as ``trace_on`` and ``trace_off`` do."""
    put(gateway, "vhosts/%2F", {"tracing": is_on})


Bind = Callable[[BlockingChannel], None]


def bind_queue(channel: BlockingChannel) -> None:
    channel.queue_bind("trace", TRACE, "#")


def bind_through_an_exchange(channel: BlockingChannel) -> None:
    channel.exchange_declare("copies", "topic", auto_delete=True)
    channel.exchange_bind("copies", TRACE, "publish.#")
    channel.queue_bind("trace", "copies", "publish.#")
    channel.queue_bind("trace", TRACE, "deliver.#")


def set_policy(gateway: Gateway) -> None:
    definition = {"max-length": 100, "message-ttl": 60_000}
    put(gateway, "policies/%2F/p", {"pattern": ".*", "definition": definition})


@pytest.mark.parametrize("bind", [bind_queue, bind_through_an_exchange], ids=["to a queue", "to an exchange"])
def test_copies_arrive_whether_binding_or_tracing_came_first(gateway: Gateway, connect: Connect, bind: Bind) -> None:
    gateway.start()
    channel = connect().channel()
    channel.confirm_delivery()
    channel.queue_declare("q")
    steps = {
        "bind": lambda: bind(channel),
        "trace_on": lambda: switch(gateway, True),
        "policy": lambda: set_policy(gateway),
    }
    for order in permutations(steps):
        channel.queue_declare("trace")
        channel.basic_publish("", "q", b"before")  # cached routes of publishers must not outlast the change
        for step in order:
            steps[step]()
        assert is_empty(channel, "trace")
        channel.basic_publish("", "q", b"seen")
        assert fetch(channel, "q", 2) == [b"before", b"seen"]
        copies = [channel.basic_get("trace", auto_ack=True) for _ in range(5)]
        assert [(method.routing_key, body) for method, _, body in copies if method is not None] == [
            ("publish.", b"seen"),
            ("deliver.q", b"before"),
            ("deliver.q", b"seen"),
        ], f"after {', '.join(order)}"
        switch(gateway, False)
        request(gateway, "DELETE", "policies/%2F/p")
        channel.queue_delete("trace")


def test_copies_stop_with_tracing_and_start_again(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.confirm_delivery()
    channel.queue_declare("q")
    channel.queue_declare("trace")
    bind_queue(channel)
    for is_on in (True, False, True):
        switch(gateway, is_on)
        channel.basic_publish("", "q", b"on" if is_on else b"off")
    assert fetch(channel, "trace", 2) == [b"on", b"on"]
