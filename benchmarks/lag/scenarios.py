"""The load during the probes' requests: floods, and single requests with very much work.

A scenario is prepared first and then run; waits are measured only while it runs. ``scale`` reduces its size for a
quick run.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final

import pika

from benchmarks.lag.mqtt_clients import MqttClients, subscribe_to_all
from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.amqp.filling import fill
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.management import Management
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP, MQTT
from benchmarks.soak.broker_under_test import reset_connection

FLOOD_S: Final = 6.0
QUEUE: Final = "lag.q"
EXCHANGE: Final = "lag.x"

#: A prepared scenario, which is run once.
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``prepare`` returns the load to measure. ``needs`` lists the listeners that a broker must have."""

    name: str
    prepare: Callable[[Broker, ExitStack, float], Run]
    needs: frozenset[str] = frozenset({AMQP})


def _flood(broker: Broker, stack: ExitStack, pieces: list[bytes]) -> Run:
    """Send each of the pieces repeatedly from its own publisher, as fast as the broker reads."""
    clients = [stack.enter_context(connected(broker.ports[AMQP])) for _ in pieces]

    def run() -> None:
        is_over = Event()
        threads = [
            Thread(target=_send_on, args=(client, piece, is_over), daemon=True)
            for client, piece in zip(clients, pieces, strict=True)
        ]
        for thread in threads:
            thread.start()
        time.sleep(FLOOD_S)
        is_over.set()

    return run


def _send_on(client: Client, piece: bytes, is_over: Event) -> None:
    client.socket.settimeout(0.2)
    view = memoryview(piece)
    at = 0
    while not is_over.is_set():
        try:
            at = (at + client.socket.send(view[at:])) % len(piece)
        except TimeoutError:
            continue
        except OSError:
            return


def _publishes(exchange: str, keys: Iterator[str], body: bytes = b"", count: int = 1000) -> bytes:
    return b"".join(_publish(exchange, key, body) for key in itertools.islice(keys, count))


def _publish(exchange: str, key: str, body: bytes) -> bytes:
    """Return the frames of a message; one with an empty body has no body frame."""
    whole = wire.publish(exchange, key, body, persistent=False)
    return whole if body else whole[: -wire.FRAME_OVERHEAD]


def fanout(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return five publishers of empty messages to a fanout exchange with 1,000 queues."""
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.declare_exchange(EXCHANGE, "fanout")
    for number in range(int(1000 * scale)):
        control.declare_queue(f"lag.{number}")
        control.bind_queue(f"lag.{number}", EXCHANGE, "")
    return _flood(broker, stack, [_publishes(EXCHANGE, itertools.repeat("k"))] * 5)


def wide(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return three persistent messages to a fanout exchange with 20,000 queues, each confirmed before the next."""
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.socket.settimeout(120)
    control.declare_exchange(EXCHANGE, "fanout")
    names = [f"lag.{number}" for number in range(int(20_000 * scale))]
    control.declare_queues(names)
    for name in names:
        control.bind_queue(name, EXCHANGE, "")
    control.confirm_select()

    def run() -> None:
        for _ in range(3):
            control.socket.sendall(wire.publish(EXCHANGE, "", b"x", persistent=True))
            control.read_confirm()

    return run


def wildcards(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a publisher with changing keys to a topic exchange with 4,096 wildcard bindings."""
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.declare_exchange(EXCHANGE, "topic")
    control.declare_queue(QUEUE)
    for words in itertools.islice(itertools.product("*#", repeat=12), int(4096 * scale)):
        control.bind_queue(QUEUE, EXCHANGE, ".".join(words))
    keys = (f"a.b.c.d.e.f.g.h.i.j.k.{number}" for number in itertools.count())
    return _flood(broker, stack, [_publishes(EXCHANGE, keys, count=20_000)])


def slow_consumer(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a publisher of 1 KiB messages to a consumer that never reads."""
    consumer = stack.enter_context(connected(broker.ports[AMQP]))
    consumer.declare_queue(QUEUE)
    consumer.consume(QUEUE, no_ack=True)
    return _flood(broker, stack, [_publishes("", itertools.repeat(QUEUE), bytes(1024), count=100)])


def _filled(broker: Broker, stack: ExitStack, count: int) -> Client:
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.socket.settimeout(120)
    control.declare_queue(QUEUE, durable=True)
    fill(broker.ports[AMQP], QUEUE, count, 10)
    return control


def purge(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a purge of a queue of 300,000 persistent messages."""
    control = _filled(broker, stack, int(300_000 * scale))
    return lambda: control.call(50, 30, b"\x00\x00" + wire.short_string(QUEUE) + b"\x00")


def delete(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a deletion of a queue of 300,000 persistent messages."""
    control = _filled(broker, stack, int(300_000 * scale))
    return lambda: (control.delete_queue(QUEUE), time.sleep(2))


def commit(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a commit of a transaction of 100,000 publishes."""
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.socket.settimeout(120)
    control.declare_queue(QUEUE, durable=True)
    control.call(90, 10)
    thousand = wire.publish("", QUEUE, bytes(10), persistent=True) * 1000
    for _ in range(int(100 * scale)):
        control.socket.sendall(thousand)
    time.sleep(3 * scale)
    return lambda: control.call(90, 20)


def requeue(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a disconnect of a consumer with 300,000 unacknowledged messages."""
    count = int(300_000 * scale)
    _filled(broker, stack, count)
    consumer = stack.enter_context(connected(broker.ports[AMQP]))
    consumer.socket.settimeout(120)
    consumer.consume(QUEUE, no_ack=False)
    for _ in range(count):
        consumer.read_arrival()
    return lambda: (consumer.close(), time.sleep(3))


def exclusive(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a disconnect of a connection with 10,000 bound exclusive queues."""
    owner = stack.enter_context(connected(broker.ports[AMQP]))
    owner.declare_exchange(EXCHANGE, "topic")
    for number in range(int(10_000 * scale)):
        name = wire.short_string(f"lag.{number}")
        owner.call(50, 10, b"\x00\x00" + name + b"\x04" + bytes(4))
        owner.bind_queue(f"lag.{number}", EXCHANGE, f"lag.{number}")
    return lambda: (owner.close(), time.sleep(3))


def unbinding(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return the deletion of an exchange with 30,000 bindings of one queue."""
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.socket.settimeout(120)
    control.declare_exchange(EXCHANGE, "topic")
    control.declare_queue(QUEUE)
    for number in range(int(30_000 * scale)):
        control.bind_queue(QUEUE, EXCHANGE, f"lag.{number}.#")
    return lambda: (control.delete_exchange(EXCHANGE), time.sleep(2))


def user(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return the deletion of a user with 500 connections, each with an exclusive queue."""
    operator = Management(broker.ports[MANAGEMENT])
    operator.ask("PUT", "/api/users/lag", json.dumps({"password": "lag", "tags": ""}))
    operator.ask("PUT", "/api/permissions/%2F/lag", json.dumps({"configure": ".*", "write": ".*", "read": ".*"}))
    login = pika.PlainCredentials("lag", "lag")
    parameters = pika.ConnectionParameters("127.0.0.1", broker.ports[AMQP], credentials=login, heartbeat=0)
    for _ in range(int(500 * scale)):
        connection = pika.BlockingConnection(parameters)
        stack.callback(reset_connection, connection)
        connection.channel().queue_declare("", exclusive=True)
    return lambda: (operator.ask("DELETE", "/api/users/lag"), time.sleep(3))


def _many_queues(broker: Broker, count: int) -> Management:
    with connected(broker.ports[AMQP]) as control:
        control.socket.settimeout(120)
        control.declare_queues([f"lag.{number}" for number in range(count)])
    return Management(broker.ports[MANAGEMENT])


def listings(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a request for 30,000 queues, sorted by a live column, and an export."""
    operator = _many_queues(broker, int(30_000 * scale))
    return lambda: [
        operator.ask("GET", path) for path in ("/api/queues", "/api/queues?sort=messages", "/api/definitions")
    ]


def policy(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return the declaration of a policy that matches 30,000 queues."""
    operator = _many_queues(broker, int(30_000 * scale))
    return lambda: (operator.put_policy("lag", ".*", {"max-length": 10}), time.sleep(3))


def vhost(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return an import and a deletion of a virtual host with 30,000 durable queues."""
    operator = Management(broker.ports[MANAGEMENT])
    queues = [
        {"name": f"lag.{number}", "vhost": "lag", "durable": True, "auto_delete": False, "arguments": {}}
        for number in range(int(30_000 * scale))
    ]
    definitions = json.dumps({"vhosts": [{"name": "lag"}], "queues": queues})
    return lambda: (
        operator.ask("POST", "/api/definitions", definitions),
        operator.ask("DELETE", "/api/vhosts/lag"),
        time.sleep(4),
    )


def imported(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return an import of 100,000 durable queues, each with a binding."""
    operator = Management(broker.ports[MANAGEMENT])
    names = [f"lag.{number}" for number in range(int(100_000 * scale))]
    definitions = json.dumps(
        {
            "queues": [{"name": name, "vhost": "/", "durable": True, "auto_delete": False} for name in names],
            "bindings": [
                {
                    "source": "amq.direct",
                    "vhost": "/",
                    "destination": name,
                    "destination_type": "queue",
                    "routing_key": name,
                }
                for name in names
            ],
        }
    )
    return lambda: (operator.ask("POST", "/api/definitions", definitions), time.sleep(3))


def collections(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return 3,000 connections that open channels and consumers and end, on a broker with 100,000 queues.

    What they leave behind makes the garbage collector run; the queues are what it must not go through each time.
    """
    _many_queues(broker, int(100_000 * scale))

    def run() -> None:
        for number in range(int(3_000 * scale)):
            with connected(broker.ports[AMQP]) as client:
                client.declare_exchange(f"lag.{number % 10}", "topic")
                client.bind_queue(f"lag.{number}", f"lag.{number % 10}", f"lag.{number}.#")
                client.consume(f"lag.{number}", no_ack=False)

    return run


def expiry(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return the simultaneous expiry and dead-lettering of 300,000 persistent messages."""
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.declare_queue("lag.dead", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "lag.dead"}
    control.declare_queue(QUEUE, durable=True, arguments=arguments)
    count = int(300_000 * scale)
    fill(broker.ports[AMQP], QUEUE, count, 10)
    operator = Management(broker.ports[MANAGEMENT])

    def run() -> None:
        operator.put_policy("lag", f"^{QUEUE}$", {"message-ttl": 1})
        while control.declare_queue("lag.dead", durable=True, passive=True) < count:
            time.sleep(0.1)

    return run


def workbench(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a search through 300,000 persistent messages, and a move of all of them."""
    control = _filled(broker, stack, int(300_000 * scale))
    control.declare_queue("lag.moved", durable=True)
    operator = Management(broker.ports[MANAGEMENT])
    path = f"/api/workbench/%2F/{QUEUE}"
    search = {"filter": {"body": {"contains": "nowhere"}}, "max_examined": 1_000_000, "max_seconds": 60}
    everything = {"filter": {}, "dry_run": False, "undo": False, "to": {"queue": "lag.moved"}}

    def run() -> None:
        operator.ask("POST", f"{path}/search", json.dumps(search))
        job = json.loads(operator.ask("POST", f"{path}/move", json.dumps(everything)))
        while job["state"] == "running":
            time.sleep(0.1)
            job = json.loads(operator.ask("GET", f"/api/workbench/jobs/{job['id']}"))
        if job["done"] != int(300_000 * scale):
            raise RuntimeError(f"the job ended early: {job['state']}, {job['reason']}, {job['done']} messages")

    return run


def overflow(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return a publisher to a full queue that dead-letters to a fanout exchange with 1,000 queues."""
    control = stack.enter_context(connected(broker.ports[AMQP]))
    control.declare_exchange(EXCHANGE, "fanout")
    for number in range(int(1000 * scale)):
        control.declare_queue(f"lag.{number}", arguments={"x-max-length": 100})
        control.bind_queue(f"lag.{number}", EXCHANGE, "")
    control.declare_queue(QUEUE, arguments={"x-max-length": 1, "x-dead-letter-exchange": EXCHANGE})
    return _flood(broker, stack, [_publishes("", itertools.repeat(QUEUE))])


def retained(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return ten new subscriptions, each of which gets 50,000 retained messages."""
    clients = MqttClients(broker.ports[MQTT])
    clients.retain(int(50_000 * scale))
    return lambda: subscribe_to_all(broker.ports[MQTT], 10, int(50_000 * scale))


def reconnect(broker: Broker, stack: ExitStack, scale: float) -> Run:
    """Return the disconnect and reconnect of 2,000 MQTT clients with wills and persistent sessions."""
    clients = MqttClients(broker.ports[MQTT])
    members = clients.connect(int(2_000 * scale))

    def run() -> None:
        for member in members:
            member.close()
        clients.connect(int(2_000 * scale))
        time.sleep(1)

    return run


#: With the management API, which only the gateway runs with.
OPERATED: Final = frozenset({AMQP, MANAGEMENT})

SCENARIOS: Final = (
    Scenario("flood to a fanout of 1,000 queues", fanout),
    Scenario("three messages to 20,000 queues each", wide),
    Scenario("flood over 4,096 bindings of wildcards", wildcards),
    Scenario("1 KiB messages flood a consumer that never reads", slow_consumer),
    Scenario("purge of 300,000 persistent messages", purge),
    Scenario("deletion of a queue of 300,000 persistent messages", delete),
    Scenario("commit of a transaction of 100,000 publishes", commit),
    Scenario("300,000 unacknowledged messages are requeued", requeue),
    Scenario("a connection with 10,000 bound exclusive queues ends", exclusive),
    Scenario("deletion of an exchange with 30,000 bindings", unbinding),
    Scenario("deletion of a user with 500 connections", user, OPERATED),
    Scenario("30,000 queues listed, sorted, exported over HTTP", listings, OPERATED),
    Scenario("a new policy for 30,000 queues", policy, OPERATED),
    Scenario("a virtual host of 30,000 queues imported and deleted", vhost, OPERATED),
    Scenario("100,000 queues with bindings imported", imported, OPERATED),
    Scenario("3,000 connections beside 100,000 queues (garbage collection)", collections, OPERATED),
    Scenario("300,000 messages expire and are dead-lettered", expiry, OPERATED),
    Scenario("300,000 messages searched and moved by the workbench", workbench, OPERATED),
    Scenario("messages overflow into a fanout of 1,000 queues", overflow),
    Scenario("50,000 retained messages to ten new subscribers", retained, frozenset({MQTT})),
    Scenario("2,000 MQTT clients with wills disconnect and reconnect", reconnect, frozenset({MQTT})),
)


@contextmanager
def prepared(scenario: Scenario, broker: Broker, scale: float) -> Iterator[Run]:
    """Prepare a scenario, and close its clients at the end."""
    with ExitStack() as stack:
        yield scenario.prepare(broker, stack, scale)
