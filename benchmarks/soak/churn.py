"""Entities that are created and deleted: connections, queues, consumers, sessions and wills. Every message is
counted.
"""

from typing import Final

import pika

from benchmarks.soak.broker_under_test import (
    ANSWER_TIMEOUT_S,
    BrokerUnderTest,
    MqttClient,
    StompClient,
    drain,
    reset_connection,
)
from benchmarks.soak.ledger import Miscounted
from benchmarks.soak.work import Activities, Bodies, Work, name_numbers

_PERSISTENT: Final = pika.BasicProperties(delivery_mode=2)

#: Kinds of queues with their arguments.
_KINDS: Final[tuple[dict[str, object], ...]] = (
    {},
    {"x-queue-type": "quorum"},
    {"x-max-priority": 5},
    {"x-queue-mode": "lazy", "x-max-length": 1000},
    {"x-message-ttl": 600_000, "x-expires": 600_000},
    {"x-single-active-consumer": True},
)


def connections(broker: BrokerUnderTest) -> Work:
    """Open connections of all protocols; close half of them normally and half by a reset."""

    def work() -> None:
        ordered, torn = broker.amqp(), broker.amqp()
        for connection in (ordered, torn):
            channel = connection.channel()
            queue = channel.queue_declare("", exclusive=True).method.queue
            channel.queue_bind(queue, "amq.topic", "soak.nowhere.#")
            channel.basic_consume(queue, lambda *_: None)
        peers: list[StompClient | MqttClient] = [
            StompClient(broker),
            StompClient(broker),
            MqttClient(broker, "soak-short"),
            MqttClient(broker, "soak-torn"),
            MqttClient(broker, "soak-web", web=True),
        ]
        ordered.close()
        reset_connection(torn)
        for number, peer in enumerate(peers):
            if number % 2:
                peer.reset_connection()
            else:
                peer.close()

    return work


def queues(broker: BrokerUnderTest) -> Work:
    """Declare an exchange and a queue of each kind in turn, fill the queue, consume everything, delete both."""
    bodies, numbers = Bodies("queues"), name_numbers()

    def work() -> None:
        number = next(numbers)
        name = f"soak.churn.{number}"
        with broker.channel() as channel:
            channel.exchange_declare(name, "topic", durable=True)
            channel.queue_declare(name, durable=True, arguments=_KINDS[number % len(_KINDS)])
            channel.queue_bind(name, name, "soak.*.#")
            sent = bodies.some(30)
            for body in sent:
                channel.basic_publish(name, f"soak.{number}.x", body, _PERSISTENT, mandatory=True)
            broker.ledger.settle("queues", sent, drain(channel, name, len(sent)))
            for body in bodies.some(10):
                channel.basic_publish(name, "soak.left.behind", body, _PERSISTENT)
            if number % 2:
                channel.queue_purge(name)
            channel.queue_delete(name)
            channel.exchange_delete(name)

    return work


def streams(broker: BrokerUnderTest) -> Work:
    """Declare a stream, fill it, read it from its beginning, delete it."""
    bodies, numbers = Bodies("streams"), name_numbers()

    def work() -> None:
        name = f"soak.stream.{next(numbers)}"
        with broker.channel() as channel:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
            sent, came = bodies.some(30), []
            for body in sent:
                channel.basic_publish("", name, body, _PERSISTENT)
            channel.basic_qos(prefetch_count=10)
            offset = {"x-stream-offset": "first"}
            for method, _, body in channel.consume(name, arguments=offset, inactivity_timeout=ANSWER_TIMEOUT_S):
                if method is None:
                    break
                came.append(body)
                channel.basic_ack(method.delivery_tag)
                if len(came) == len(sent):
                    break
            channel.cancel()
            broker.ledger.settle("streams", sent, came)
            channel.queue_delete(name)

    return work


def consumers(broker: BrokerUnderTest) -> Work:
    """Consume some messages and cancel, consume some and reset; unacknowledged messages arrive at the next consumer."""
    bodies, numbers = Bodies("consumers"), name_numbers()

    def work() -> None:
        name = f"soak.consumed.{next(numbers)}"
        with broker.channel() as channel:
            channel.queue_declare(name, durable=True)
            sent = bodies.some(30)
            for body in sent:
                channel.basic_publish("", name, body, _PERSISTENT)
            came = _taken(broker, name, is_reset=False) + _taken(broker, name, is_reset=True)
            came += drain(channel, name, len(sent) - len(came))
            broker.ledger.settle("consumers", sent, came)
            channel.queue_delete(name)

    return work


def _taken(broker: BrokerUnderTest, name: str, *, is_reset: bool) -> list[bytes]:
    """Receive ten messages, acknowledge five, and end."""
    connection = broker.amqp()
    channel = connection.channel()
    channel.basic_qos(prefetch_count=10)
    came: list[bytes] = []
    for method, _, body in channel.consume(name, inactivity_timeout=ANSWER_TIMEOUT_S):
        if method is None:
            raise Miscounted(f"a consumer of {name} got {len(came)} messages only")
        came.append(body)
        if len(came) == 5:
            channel.basic_ack(method.delivery_tag, multiple=True)
            break
    if is_reset:
        # the answer to a passive declaration follows the acknowledgement
        channel.queue_declare(name, passive=True)
        reset_connection(connection)
    else:
        channel.cancel()
        connection.close()
    return came


def sessions(broker: BrokerUnderTest) -> Work:
    """Reconnect to an MQTT session after a pause with messages; leave every other one to expire."""
    bodies, numbers = Bodies("sessions"), name_numbers()

    def work() -> None:
        number = next(numbers)
        name, topic = f"soak-session-{number}", f"soak/sessions/{number}"
        first = MqttClient(broker, name, expiry_s=120)
        first.subscribe(topic, 1)
        first.reset_connection() if number % 2 else first.close()
        publisher = MqttClient(broker, f"soak-feeder-{number}")
        sent = bodies.some(10)
        for body in sent:
            publisher.publish(topic, body, 1)
        publisher.close()
        back = MqttClient(broker, name, clean=False, expiry_s=2 if number % 2 else 0)
        came = back.receive(len(sent))
        back.close()
        broker.ledger.settle("sessions", sent, came)

    return work


def retained(broker: BrokerUnderTest) -> Work:
    """Set retained messages, read them by a new subscription, clear them."""
    bodies, numbers = Bodies("retained"), name_numbers()

    def work() -> None:
        number = next(numbers)
        publisher = MqttClient(broker, f"soak-retainer-{number}")
        sent = bodies.some(10)
        for at, body in enumerate(sent):
            publisher.publish(f"soak/retained/{number}/{at}", body, 1, retain=True)
        reader = MqttClient(broker, f"soak-reader-{number}")
        reader.subscribe(f"soak/retained/{number}/#", 1)
        came = reader.receive(len(sent))
        reader.close()
        for at in range(len(sent)):
            publisher.publish(f"soak/retained/{number}/{at}", b"", 1, retain=True)
        publisher.close()
        broker.ledger.settle("retained", sent, came)

    return work


def wills(broker: BrokerUnderTest) -> Work:
    """Reset clients with wills; each will arrives once."""
    bodies, numbers = Bodies("wills"), name_numbers()

    def work() -> None:
        number = next(numbers)
        topic = f"soak/wills/{number}"
        watcher = MqttClient(broker, f"soak-watcher-{number}")
        watcher.subscribe(topic, 1)
        sent = bodies.some(3)
        for at, body in enumerate(sent):
            MqttClient(broker, f"soak-mortal-{number}-{at}", will=(topic, body)).reset_connection()
        came = watcher.receive(len(sent))
        watcher.close()
        broker.ledger.settle("wills", sent, came)

    return work


def transactions(broker: BrokerUnderTest) -> Work:
    """Commit a STOMP transaction, abort another, and reset the connection during a third."""
    bodies, numbers = Bodies("transactions"), name_numbers()

    def work() -> None:
        destination = f"destination:/queue/soak.tx.{next(numbers)}"
        sender, receiver = StompClient(broker), StompClient(broker)
        receiver.ask("SUBSCRIBE", "id:0", destination, "ack:auto", "auto-delete:true")
        sent = bodies.some(10)
        for number, end in enumerate(("ABORT", "COMMIT", "")):
            transaction = f"transaction:{number}"
            sender.send("BEGIN", transaction)
            for body in sent if end == "COMMIT" else bodies.some(10):
                sender.send("SEND", destination, "auto-delete:true", transaction, body=body)
            if end:
                sender.ask(end, transaction)
        came = [receiver.expect("MESSAGE")[1] for _ in sent]
        sender.reset_connection()
        receiver.close()
        broker.ledger.settle("transactions", sent, came)

    return work


def dead_letters(broker: BrokerUnderTest) -> Work:
    """Let messages expire into another queue by a policy that is set and deleted over HTTP."""
    bodies, numbers = Bodies("dead letters"), name_numbers()

    def work() -> None:
        number = next(numbers)
        living, dead, policy = f"soak.living.{number}", f"soak.dead.{number}", f"policies/%2F/soak-{number}"
        with broker.channel() as channel:
            for name in (living, dead):
                channel.queue_declare(name, durable=True)
            sent = bodies.some(20)
            for body in sent:
                channel.basic_publish("", living, body, _PERSISTENT)
            definition = {"message-ttl": 50, "dead-letter-exchange": "", "dead-letter-routing-key": dead}
            fields = {"pattern": f"^{living}$".replace(".", "\\."), "definition": definition, "apply-to": "queues"}
            broker.api("PUT", policy, fields)
            came = drain(channel, dead, len(sent))
            broker.api("DELETE", policy)
            for name in (living, dead):
                channel.queue_delete(name)
        broker.ledger.settle("dead letters", sent, came)

    return work


CHURN: Final[Activities] = {
    "connections": (connections, 2.0),
    "queues": (queues, 1.5),
    "streams": (streams, 5.0),
    "consumers": (consumers, 2.0),
    "sessions": (sessions, 2.0),
    "retained": (retained, 3.0),
    "wills": (wills, 3.0),
    "transactions": (transactions, 2.0),
    "dead letters": (dead_letters, 3.0),
}
"""Each with its pause between two rounds, in seconds."""
