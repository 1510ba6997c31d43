"""The measurements, one for each dimension. Each starts with a fresh broker, and returns one point."""

import multiprocessing
import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.curves.point import Point
from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.amqp.receipts import Confirms
from benchmarks.load.amqp.rig import open_rig
from benchmarks.load.amqp.topology import TOPIC_QUEUES, topic_route
from benchmarks.load.backlog import measure_backlog
from benchmarks.load.client_rig import BrokerRefused
from benchmarks.load.drive import Flow, drive
from benchmarks.load.gateway import launch
from benchmarks.load.link import Link
from benchmarks.load.measurement import Measurement, stopwatch
from benchmarks.load.mqtt import wire as mqtt_wire
from benchmarks.load.mqtt.client import Client as MqttClient
from benchmarks.load.peers import SUBJECT
from benchmarks.load.processes import resident_bytes
from benchmarks.load.publisher import Cycle, Publisher
from benchmarks.load.rounds import measure_rounds
from benchmarks.load.running import Broker
from benchmarks.load.stream import measure_rigs, measure_stream
from benchmarks.load.workloads import AMQP, MQTT, Measure, Workload

#: Seconds of one measurement, after the warm-up.
SECONDS: Final = 2.0

_BODY_BYTES: Final = 100
_WINDOW: Final = 20_000

#: The messages in flight take at most this much memory.
_IN_FLIGHT_BYTES: Final = 64 << 20

#: A source address has ports for several times as many connections to one port.
_CONNECTIONS_OF_ADDRESS: Final = 5_000

#: Filters in one SUBSCRIBE, and subscriptions of one client.
_FILTERS_AT_A_TIME: Final = 100
_FILTERS_OF_CLIENT: Final = 1_000

#: The queue with many consumers.
_QUEUE: Final = "curve"
_POLL_S: Final = 0.001

_MOST_KEYS: Final = 4096

#: Messages that a queue of the curve of queues keeps: longer ones would go to disk if there are few queues.
_KEPT: Final = 10


def by_size(directory: Path, size: int) -> Point:
    """Messages of this many bytes from one publisher to one consumer, acknowledged automatically."""
    window = max(2, min(_WINDOW, _IN_FLIGHT_BYTES // size))
    with launch(directory) as broker:
        return _point(broker, size, lambda: measure_stream(broker, Workload("size", size, window, 0), SECONDS))


def by_connections(directory: Path, connections: int) -> Point:
    """A publisher and a consumer, beside idle MQTT connections."""
    with launch(directory) as broker, _idle_connections(broker.ports[MQTT], connections):
        workload = Workload("pair", _BODY_BYTES, _WINDOW, 0)
        return _point(broker, connections, lambda: measure_stream(broker, workload, SECONDS))


def by_subscriptions(directory: Path, subscriptions: int) -> Point:
    """MQTT with QoS 0, one publisher and one subscriber, beside subscriptions to other topics."""
    workload = Workload("mqtt", _BODY_BYTES, 500, 0, measure=Measure.ROUNDS, protocol=MQTT)
    with launch(directory) as broker, _subscriptions(broker.ports[MQTT], subscriptions):
        return _point(broker, subscriptions, lambda: measure_rounds(broker, workload, SECONDS))


def by_queues(directory: Path, queues: int) -> Point:
    """Transient messages with confirms to this many durable queues in turn, each of which keeps the newest few."""
    names = [f"curve.{number:06}" for number in range(queues)]
    with launch(directory) as broker, connected(broker.ports[AMQP]) as control:
        control.declare_queues(names, {"x-max-length": _KEPT})
        some = names[:: max(1, queues // _MOST_KEYS)][:_MOST_KEYS]
        messages = [wire.publish("", name, bytes(_BODY_BYTES), persistent=False) for name in some]
        cycle = Cycle(b"".join(messages), len(messages[0]))
        return _point(broker, queues, lambda: _publish(broker, cycle))


def by_bindings(directory: Path, bindings: int) -> Point:
    """A topic exchange with this many patterns of three kinds, one of which matches."""
    queues = [f"curve.{number}" for number in range(TOPIC_QUEUES)]
    workload = Workload("topic", _BODY_BYTES, _WINDOW, 0)
    with launch(directory) as broker, connected(broker.ports[AMQP]) as control, ExitStack() as stack:
        for queue in queues:
            control.declare_queue(queue)
        route = topic_route(control, "curve", queues, bindings)
        rig = open_rig(stack, broker.ports[AMQP], workload, route, consume=True)
        return _point(broker, bindings, lambda: measure_rigs(broker, [rig], SECONDS))


def by_consumers(directory: Path, consumers: int) -> Point:
    """Transient messages with confirms to one queue with this many consumers, acknowledged automatically."""
    message = wire.publish("", _QUEUE, bytes(_BODY_BYTES), persistent=False)
    with launch(directory) as broker, connected(broker.ports[AMQP]) as control, ExitStack() as stack:
        control.declare_queue(_QUEUE)
        clients = [stack.enter_context(connected(broker.ports[AMQP])) for _ in range(consumers)]
        for client in clients:
            client.consume(_QUEUE, no_ack=True)
        return _point(broker, consumers, lambda: _publish(broker, Cycle(message, len(message)), clients, control))


def by_backlog(directory: Path, messages: int) -> Point:
    """Persistent messages of 1 KiB that wait in one queue, then drained: the cost and rate of the drain."""
    found = measure_backlog(SUBJECT, directory, messages)
    return Point(messages, found.drain_rate, found.drain_cpu_us, found.filled_resident)


def _point(broker: Broker, at: int, measure: Callable[[], Measurement]) -> Point:
    memory = resident_bytes(broker.pid)
    found = measure()
    return Point(at, found.rate, found.broker_us, memory)


def _publish(
    broker: Broker, cycle: Cycle, consumers: Sequence[Client] = (), control: Client | None = None
) -> Measurement:
    """Publish with confirms for ``SECONDS``, and until the queue of the consumers is empty."""
    with connected(broker.ports[AMQP]) as client, select.epoll() as poll, _discarded(consumers):
        client.confirm_select()
        link = Link(client.quiet_socket(), poll)
        publisher = Publisher(link, cycle, _WINDOW, 1 << 60, Confirms(0))
        with stopwatch(broker.pid) as watch:
            drive(poll, [Flow(publisher, ())], SECONDS)
            while control is not None and control.declare_queue(_QUEUE, passive=True):
                time.sleep(_POLL_S)
        link.release()
        return Measurement(publisher.messages, watch, None, None)


@contextmanager
def _discarded(clients: Sequence[Client]) -> Iterator[None]:
    """Read and discard what these clients receive, in a process of its own."""
    if not clients:
        yield
        return
    reader = multiprocessing.get_context("fork").Process(target=_discard, args=(clients,), daemon=True)
    reader.start()
    try:
        yield
    finally:
        reader.kill()
        reader.join()


def _discard(clients: Sequence[Client]) -> None:
    with select.epoll() as poll:
        for client in clients:
            poll.register(client.socket.fileno(), select.EPOLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if not os.read(descriptor, 1 << 18):
                    return  # the broker has ended


@contextmanager
def _idle_connections(port: int, count: int) -> Iterator[None]:
    """Open MQTT connections without keep alive, from as many source addresses as they need.

    Each number has addresses of its own, because the ports of closed connections stay in use for a minute.
    """
    with ExitStack() as stack:
        for number in range(count):
            source = f"127.0.{len(str(count))}.{1 + number // _CONNECTIONS_OF_ADDRESS}"
            connection = stack.enter_context(
                closing(socket.create_connection(("127.0.0.1", port), source_address=(source, 0)))
            )
            connection.sendall(mqtt_wire.connect(f"idle-{number}", is_clean=True))
            answer = connection.recv(mqtt_wire.CONNACK_BYTES)
            if answer[3]:
                raise BrokerRefused(f"CONNECT was answered by {answer.hex()}")
        yield


@contextmanager
def _subscriptions(port: int, count: int) -> Iterator[None]:
    """Subscribe to filters that match no message of the measurement, a thousand for each client."""
    filters = [f"curve/{number}/+" for number in range(count)]
    with ExitStack() as stack:
        for first in range(0, count, _FILTERS_OF_CLIENT):
            client = MqttClient(port, f"curve-{first}")
            stack.callback(client.close)
            mine = filters[first : first + _FILTERS_OF_CLIENT]
            for at in range(0, len(mine), _FILTERS_AT_A_TIME):
                some = mine[at : at + _FILTERS_AT_A_TIME]
                body = b"\x00\x01" + b"".join(mqtt_wire.string(each.encode()) + b"\x00" for each in some)
                client.send(mqtt_wire.packet(mqtt_wire.SUBSCRIBE, body))
                client.expect(mqtt_wire.packet(mqtt_wire.SUBACK, b"\x00\x01" + bytes(len(some))))
        yield
