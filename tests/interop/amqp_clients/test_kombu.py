"""kombu: producers, consumers, simple queues and fanouts through its amqp transport."""

import contextlib
import socket
from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest
from amqp.exceptions import NotFound, PreconditionFailed, ResourceLocked
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.message import Message
from kombu.messaging import Consumer, Producer
from kombu.pools import producers, reset

from tests.interop.broker import Broker


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.url, connect_timeout=5, transport_options={"confirm_publish": True}) as opened:
        yield opened


@pytest.fixture
def queue(connection: Connection, name: str) -> Iterator[Queue]:
    """Declare a queue on its own direct exchange, bound with the key ``task``."""
    exchange = Exchange(name, "direct", durable=False, auto_delete=True)
    declared = Queue(name, exchange, "task", durable=False, channel=connection.default_channel)
    declared.declare()
    yield declared
    declared.delete()


def publish(queue: Queue, *bodies: object, **options: Any) -> None:
    producer = Producer(queue.channel, queue.exchange, queue.routing_key)
    for body in bodies:
        producer.publish(body, **options)


def take(queue: Queue) -> Message:
    message: Message | None = queue.get()
    assert message is not None
    return message


def drain(connection: Connection) -> None:
    """Receive until nothing more arrives."""
    with contextlib.suppress(socket.timeout):
        while True:
            connection.drain_events(timeout=0.3)


def test_a_published_value_is_consumed_and_acknowledged(connection: Connection, queue: Queue) -> None:
    received: list[object] = []

    def on_message(body: object, message: Message) -> None:
        received.append(body)
        message.ack()

    with Consumer(queue.channel, [queue], callbacks=[on_message], accept=["json"]):
        publish(queue, {"hello": "world"}, [1, 2, 3])
        while len(received) < 2:
            connection.drain_events(timeout=5)
    assert received == [{"hello": "world"}, [1, 2, 3]]
    assert queue.get() is None


def test_a_cancelled_consumer_receives_nothing_more(connection: Connection, queue: Queue) -> None:
    consumer = Consumer(queue.channel, [queue], callbacks=[lambda *_: pytest.fail("delivered after cancel")])
    consumer.consume()
    consumer.cancel()
    publish(queue, "late")
    drain(connection)
    assert take(queue).payload == "late"


def test_a_requeued_message_is_redelivered(queue: Queue) -> None:
    publish(queue, "again")
    first = take(queue)
    assert not first.delivery_info["redelivered"]
    first.requeue()
    assert take(queue).delivery_info["redelivered"]


def test_a_rejected_message_is_discarded(queue: Queue) -> None:
    publish(queue, "unwanted")
    take(queue).reject()
    assert queue.get() is None


def test_get_on_an_empty_queue_returns_nothing(queue: Queue) -> None:
    assert queue.get() is None


def test_qos_limits_unacknowledged_messages(connection: Connection, queue: Queue) -> None:
    received: list[Message] = []
    with Consumer(queue.channel, [queue], on_message=received.append, prefetch_count=2):
        publish(queue, *range(5))
        drain(connection)
        assert [message.payload for message in received] == [0, 1]
        received[0].ack()
        drain(connection)
        assert [message.payload for message in received] == [0, 1, 2]


def test_an_exclusive_queue_is_locked_for_a_second_connection(
    broker: Broker, connection: Connection, name: str
) -> None:
    queue = Queue(name, exclusive=True)
    queue.bind(connection.default_channel).queue_declare()
    with Connection(broker.url, connect_timeout=5) as second, pytest.raises(ResourceLocked):
        queue.bind(second.default_channel).queue_declare()


def test_a_transaction_is_committed_or_rolled_back(broker: Broker, queue: Queue) -> None:
    with Connection(broker.url, connect_timeout=5) as plain:
        channel = plain.channel()
        producer = Producer(channel, queue.exchange.bind(channel), queue.routing_key)
        channel.tx_select()
        producer.publish("discarded")
        channel.tx_rollback()
        producer.publish("kept")
        assert queue.get() is None
        channel.tx_commit()
    assert take(queue).payload == "kept"


def test_a_refusal_raises_the_exception_of_its_code(connection: Connection, name: str) -> None:
    with pytest.raises(NotFound):
        Queue(name, channel=connection.channel()).queue_declare(passive=True)
    Exchange(name, "direct", durable=False, auto_delete=True, channel=connection.channel()).declare()
    with pytest.raises(PreconditionFailed):
        Exchange(name, "topic", durable=False, auto_delete=True, channel=connection.channel()).declare()
    connection.default_channel.exchange_delete(name)


def test_headers_priority_and_compression_survive(queue: Queue) -> None:
    publish(queue, {"rows": "x" * 5000}, headers={"tenant": "acme", "depth": 3}, compression="zlib", priority=4)
    message = take(queue)
    assert message.payload == {"rows": "x" * 5000}
    assert message.headers["tenant"] == "acme"
    assert (message.headers["depth"], message.properties["priority"]) == (3, 4)


def test_a_body_above_one_mebibyte_is_delivered_unchanged(queue: Queue) -> None:
    body = b"\xce" * (1024 * 1024 + 1)
    publish(queue, body, content_type="application/data", content_encoding="binary")
    assert bytes(take(queue).body) == body


def test_a_fanout_reaches_every_queue(connection: Connection, name: str) -> None:
    exchange = Exchange(name, "fanout", durable=False, auto_delete=True)
    queues = [
        Queue(f"{name}-{side}", exchange, durable=False, exclusive=True, channel=connection.default_channel)
        for side in ("left", "right")
    ]
    for queue in queues:
        queue.declare()
    publish(queues[0], "to all")
    assert [take(queue).payload for queue in queues] == ["to all", "to all"]


def test_an_exchange_can_be_bound_to_an_exchange(connection: Connection, queue: Queue, name: str) -> None:
    source = Exchange(f"{name}-source", "topic", durable=False, auto_delete=True, channel=connection.default_channel)
    source.declare()
    queue.exchange.bind(connection.default_channel).bind_to(source, routing_key="task")
    Producer(connection.default_channel, source).publish("through both", routing_key="task")
    assert take(queue).payload == "through both"


def test_a_simple_queue_puts_and_gets(connection: Connection, name: str) -> None:
    transient = {"durable": False, "auto_delete": True}
    with connection.SimpleQueue(name, queue_opts=transient, exchange_opts=transient) as simple:
        simple.put({"n": 1})
        message = simple.get(block=True, timeout=5)
        assert message.payload == {"n": 1}
        message.ack()
        with pytest.raises(Empty):
            simple.get(block=False)


def test_a_pooled_producer_declares_its_exchange(connection: Connection, name: str) -> None:
    queue = Queue(name, Exchange("", "direct"), name, durable=False, auto_delete=True)
    with producers[connection].acquire(block=True, timeout=5) as producer:
        producer.publish("declared first", exchange="", routing_key=name, declare=[queue], retry=True)
    received = queue.bind(connection.default_channel)
    assert take(received).payload == "declared first"
    received.delete()
    reset()


def test_a_higher_prefetch_limit_applies_to_running_consumers(connection: Connection, queue: Queue) -> None:
    """kombu shares the limit among a channel's consumers if ``product`` is RabbitMQ 3.3 or later."""
    assert connection.connection.server_properties["product"] == "RabbitMQ"
    shares = not connection.qos_semantics_matches_spec
    assert shares
    publish(queue, *range(5))
    received: list[object] = []
    consumer = Consumer(queue.channel, [queue], callbacks=[lambda body, _: received.append(body)])
    consumer.qos(prefetch_count=1, apply_global=shares)
    with consumer:
        drain(connection)
        held_at_one = list(received)
        consumer.qos(prefetch_count=3, apply_global=shares)
        drain(connection)
    assert (held_at_one, received) == ([0], [0, 1, 2])
