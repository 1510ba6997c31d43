"""The six classic RabbitMQ tutorials, each program on its own connection."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic, BasicProperties

from tests.interop.amqp_clients.pika_client import parameters, wait_for
from tests.interop.broker import Broker
from tests.waiting import wait_until

TIMEOUT_S: Final = 15.0

Received = list[tuple[str, bytes]]


@contextmanager
def connected(broker: Broker) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(parameters(broker)) as connection:
        yield connection.channel()


class Receiver(threading.Thread):
    """A consumer program: its own thread, connection and channel; set up by a function, then consuming.

    The function declares what the program needs and starts its consumers. The
    thread is consuming once the ``with`` block is entered, and is stopped and
    joined when the block is left.
    """

    def __init__(self, broker: Broker, set_up: Callable[[BlockingChannel], None]) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._set_up = set_up
        self._is_ready = threading.Event()
        self._is_done = threading.Event()

    def run(self) -> None:
        with connected(self._broker) as channel:
            self._set_up(channel)
            self._is_ready.set()
            while not self._is_done.is_set():
                channel.connection.process_data_events(time_limit=0.05)

    def __enter__(self) -> "Receiver":
        self.start()
        assert self._is_ready.wait(TIMEOUT_S), "the receiver did not start consuming"
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self.join(TIMEOUT_S)


def bodies(received: Received) -> list[bytes]:
    return [body for _, body in received]


def test_1_hello_world(broker: Broker, name: str) -> None:
    received: Received = []

    def receive(channel: BlockingChannel) -> None:
        channel.queue_declare(queue=name, auto_delete=True)
        channel.basic_consume(
            queue=name,
            auto_ack=True,
            on_message_callback=lambda _c, m, _p, body: received.append((m.routing_key, body)),
        )

    with Receiver(broker, receive):
        with connected(broker) as channel:
            channel.queue_declare(queue=name, auto_delete=True)
            channel.basic_publish(exchange="", routing_key=name, body=b"Hello World!")
        wait_until(lambda: received)
    assert received == [(name, b"Hello World!")]


def test_2_work_queues_distribute_tasks_evenly_and_lose_none(broker: Broker, name: str) -> None:
    done: dict[str, Received] = {"quick": [], "busy": []}

    def worker(who: str, seconds: float) -> Callable[[BlockingChannel], None]:
        def work(channel: BlockingChannel, method: Basic.Deliver, _properties: BasicProperties, body: bytes) -> None:
            channel.connection.sleep(seconds)  # the work of the task
            done[who].append((method.routing_key, body))
            channel.basic_ack(delivery_tag=method.delivery_tag)

        def receive(channel: BlockingChannel) -> None:
            channel.queue_declare(queue=name, durable=True)
            channel.basic_qos(prefetch_count=1)
            channel.basic_consume(queue=name, on_message_callback=work)

        return receive

    tasks = [b"task %d" % number for number in range(12)]
    with Receiver(broker, worker("quick", 0.01)), Receiver(broker, worker("busy", 0.5)):
        with connected(broker) as channel:
            channel.queue_declare(queue=name, durable=True)
            for task in tasks:
                persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)
                channel.basic_publish(exchange="", routing_key=name, body=task, properties=persistent)
        wait_until(lambda: len(done["quick"]) + len(done["busy"]) == len(tasks))
    with connected(broker) as channel:
        assert channel.queue_delete(queue=name).method.message_count == 0
    assert sorted(bodies(done["quick"] + done["busy"])) == sorted(tasks)
    assert len(done["quick"]) > len(done["busy"]) > 0


def test_2_the_task_of_a_worker_that_dies_goes_to_another(broker: Broker, name: str) -> None:
    with connected(broker) as dying:
        dying.queue_declare(queue=name, durable=True)
        dying.basic_publish(exchange="", routing_key=name, body=b"important")
        method, _, _ = dying.basic_get(queue=name)
        assert method is not None
    with connected(broker) as channel:
        method, _, body = channel.basic_get(queue=name, auto_ack=True)
        assert method is not None
        assert (body, method.redelivered) == (b"important", True)
        channel.queue_delete(queue=name)


def test_3_publish_subscribe_sends_a_copy_to_every_subscriber(broker: Broker, name: str) -> None:
    screen: Received = []
    disk: Received = []

    with (
        Receiver(broker, log_receiver(name, "fanout", [""], screen)),
        Receiver(broker, log_receiver(name, "fanout", [""], disk)),
    ):
        emit_logs(broker, name, "fanout", {"": b"info: Hello World!"})
        wait_until(lambda: screen and disk)
    assert bodies(screen) == bodies(disk) == [b"info: Hello World!"]


def test_4_routing_selects_by_severity(broker: Broker, name: str) -> None:
    screen: Received = []
    disk: Received = []
    logs = {"info": b"started", "warning": b"disk is slow", "error": b"disk is full"}

    with (
        Receiver(broker, log_receiver(name, "direct", list(logs), screen)),
        Receiver(broker, log_receiver(name, "direct", ["error"], disk)),
    ):
        emit_logs(broker, name, "direct", logs)
        wait_until(lambda: len(screen) == 3 and disk)
    assert screen == list(logs.items())
    assert disk == [("error", b"disk is full")]


@pytest.mark.parametrize(
    ("binding_keys", "expected"),
    [
        (["#"], ["kern.critical", "kern.info", "cron.critical", "anonymous.info.local"]),
        (["kern.*"], ["kern.critical", "kern.info"]),
        (["*.critical"], ["kern.critical", "cron.critical"]),
        (["kern.*", "*.critical"], ["kern.critical", "kern.info", "cron.critical"]),
        (["*.info"], ["kern.info"]),
        (["anonymous.#"], ["anonymous.info.local"]),
    ],
)
def test_5_topics_select_by_pattern(broker: Broker, name: str, binding_keys: list[str], expected: list[str]) -> None:
    received: Received = []
    logs = dict.fromkeys(["kern.critical", "kern.info", "cron.critical", "anonymous.info.local"], b"a log line")

    with Receiver(broker, log_receiver(name, "topic", binding_keys, received)):
        emit_logs(broker, name, "topic", logs)
        wait_until(lambda: len(received) >= len(expected))
    assert [routing_key for routing_key, _ in received] == expected


def test_6_rpc_answers_each_request_on_its_callback_queue(broker: Broker, name: str) -> None:
    def serve(channel: BlockingChannel) -> None:
        def on_request(_: BlockingChannel, method: Basic.Deliver, properties: BasicProperties, body: bytes) -> None:
            reply = pika.BasicProperties(correlation_id=properties.correlation_id)
            channel.basic_publish(
                exchange="", routing_key=properties.reply_to, properties=reply, body=b"%d" % fibonacci(int(body))
            )
            channel.basic_ack(delivery_tag=method.delivery_tag)

        channel.queue_declare(queue=name, auto_delete=True)
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(queue=name, on_message_callback=on_request)

    with Receiver(broker, serve), connected(broker) as channel:
        client = FibonacciClient(channel, name)
        assert [client.call(number) for number in range(11)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


class FibonacciClient:
    """The client of tutorial six: one exclusive callback queue; answers are matched by correlation id."""

    def __init__(self, channel: BlockingChannel, server_queue: str) -> None:
        self._channel = channel
        self._server_queue = server_queue
        self._answers: dict[str, bytes] = {}
        self._callback_queue = channel.queue_declare(queue="", exclusive=True).method.queue
        channel.basic_consume(queue=self._callback_queue, on_message_callback=self._on_answer, auto_ack=True)

    def call(self, number: int) -> int:
        correlation_id = str(uuid.uuid4())
        properties = pika.BasicProperties(reply_to=self._callback_queue, correlation_id=correlation_id)
        self._channel.basic_publish(
            exchange="", routing_key=self._server_queue, properties=properties, body=b"%d" % number
        )
        wait_for(self._channel.connection, lambda: correlation_id in self._answers)
        return int(self._answers.pop(correlation_id))

    def _on_answer(self, _channel: object, _method: object, properties: BasicProperties, body: bytes) -> None:
        self._answers[properties.correlation_id] = body


def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def log_receiver(
    exchange: str, kind: str, binding_keys: list[str], received: Received
) -> Callable[[BlockingChannel], None]:
    """Receive logs from an exchange as tutorials three, four and five do."""

    def receive(channel: BlockingChannel) -> None:
        channel.exchange_declare(exchange=exchange, exchange_type=kind, auto_delete=True)
        queue = channel.queue_declare(queue="", exclusive=True).method.queue
        for binding_key in binding_keys:
            channel.queue_bind(exchange=exchange, queue=queue, routing_key=binding_key)
        channel.basic_consume(
            queue=queue,
            auto_ack=True,
            on_message_callback=lambda _c, m, _p, body: received.append((m.routing_key, body)),
        )

    return receive


def emit_logs(broker: Broker, exchange: str, kind: str, logs: dict[str, bytes]) -> None:
    """Publish each log line with its routing key, in order."""
    with connected(broker) as channel:
        channel.exchange_declare(exchange=exchange, exchange_type=kind, auto_delete=True)
        for routing_key, line in logs.items():
            channel.basic_publish(exchange=exchange, routing_key=routing_key, body=line)
