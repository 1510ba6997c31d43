"""Entities that are created and deleted: connections, queues, consumers, sessions and wills. Every message is
counted.
"""

from itertools import count
from typing import Final

import pika

from benchmarks.soak.ledger import Miscounted
from benchmarks.soak.place import PATIENCE_S, MqttClient, Place, StompClient, drain, tear
from benchmarks.soak.work import Activities, Bodies, Work

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


def connections(place: Place) -> Work:
    """Open connections of all protocols; close half of them normally and half by a reset."""

    def work() -> None:
        ordered, torn = place.amqp(), place.amqp()
        for connection in (ordered, torn):
            channel = connection.channel()
            queue = channel.queue_declare("", exclusive=True).method.queue
            channel.queue_bind(queue, "amq.topic", "soak.nowhere.#")
            channel.basic_consume(queue, lambda *_: None)
        peers: list[StompClient | MqttClient] = [
            StompClient(place),
            StompClient(place),
            MqttClient(place, "soak-short"),
            MqttClient(place, "soak-torn"),
            MqttClient(place, "soak-web", web=True),
        ]
        ordered.close()
        tear(torn)
        for number, peer in enumerate(peers):
            if number % 2:
                peer.tear()
            else:
                peer.close()

    return work


def queues(place: Place) -> Work:
    """Declare an exchange and a queue of each kind in turn, fill the queue, consume everything, delete both."""
    bodies, numbers = Bodies("queues"), count()

    def work() -> None:
        number = next(numbers)
        name = f"soak.churn.{number}"
        with place.channel() as channel:
            channel.exchange_declare(name, "topic", durable=True)
            channel.queue_declare(name, durable=True, arguments=_KINDS[number % len(_KINDS)])
            channel.queue_bind(name, name, "soak.*.#")
            sent = bodies.some(30)
            for body in sent:
                channel.basic_publish(name, f"soak.{number}.x", body, _PERSISTENT, mandatory=True)
            place.ledger.settle("queues", sent, drain(channel, name, len(sent)))
            for body in bodies.some(10):
                channel.basic_publish(name, "soak.left.behind", body, _PERSISTENT)
            if number % 2:
                channel.queue_purge(name)
            channel.queue_delete(name)
            channel.exchange_delete(name)

    return work


def streams(place: Place) -> Work:
    """Declare a stream, fill it, read it from its beginning, delete it."""
    bodies, numbers = Bodies("streams"), count()

    def work() -> None:
        name = f"soak.stream.{next(numbers)}"
        with place.channel() as channel:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
            sent, came = bodies.some(30), []
            for body in sent:
                channel.basic_publish("", name, body, _PERSISTENT)
            channel.basic_qos(prefetch_count=10)
            offset = {"x-stream-offset": "first"}
            for method, _, body in channel.consume(name, arguments=offset, inactivity_timeout=PATIENCE_S):
                if method is None:
                    break
                came.append(body)
                channel.basic_ack(method.delivery_tag)
                if len(came) == len(sent):
                    break
            channel.cancel()
            place.ledger.settle("streams", sent, came)
            channel.queue_delete(name)

    return work


def consumers(place: Place) -> Work:
    """Consume some messages and cancel, consume some and reset; unacknowledged messages arrive at the next consumer."""
    bodies, numbers = Bodies("consumers"), count()

    def work() -> None:
        name = f"soak.consumed.{next(numbers)}"
        with place.channel() as channel:
            channel.queue_declare(name, durable=True)
            sent = bodies.some(30)
            for body in sent:
                channel.basic_publish("", name, body, _PERSISTENT)
            came = _taken(place, name, is_torn=False) + _taken(place, name, is_torn=True)
            came += drain(channel, name, len(sent) - len(came))
            place.ledger.settle("consumers", sent, came)
            channel.queue_delete(name)

    return work


def _taken(place: Place, name: str, *, is_torn: bool) -> list[bytes]:
    """Receive ten messages, acknowledge five, and end."""
    connection = place.amqp()
    channel = connection.channel()
    channel.basic_qos(prefetch_count=10)
    came: list[bytes] = []
    for method, _, body in channel.consume(name, inactivity_timeout=PATIENCE_S):
        if method is None:
            raise Miscounted(f"a consumer of {name} got {len(came)} messages only")
        came.append(body)
        if len(came) == 5:
            channel.basic_ack(method.delivery_tag, multiple=True)
            break
    if is_torn:
        # the answer to a passive declaration follows the acknowledgement
        channel.queue_declare(name, passive=True)
        tear(connection)
    else:
        channel.cancel()
        connection.close()
    return came


def sessions(place: Place) -> Work:
    """Reconnect to an MQTT session after a pause with messages; leave every other one to expire."""
    bodies, numbers = Bodies("sessions"), count()

    def work() -> None:
        number = next(numbers)
        name, topic = f"soak-session-{number}", f"soak/sessions/{number}"
        first = MqttClient(place, name, expiry_s=120)
        first.subscribe(topic, 1)
        first.tear() if number % 2 else first.close()
        publisher = MqttClient(place, f"soak-feeder-{number}")
        sent = bodies.some(10)
        for body in sent:
            publisher.publish(topic, body, 1)
        publisher.close()
        back = MqttClient(place, name, clean=False, expiry_s=2 if number % 2 else 0)
        came = back.receive(len(sent))
        back.close()
        place.ledger.settle("sessions", sent, came)

    return work


def retained(place: Place) -> Work:
    """Set retained messages, read them by a new subscription, clear them."""
    bodies, numbers = Bodies("retained"), count()

    def work() -> None:
        number = next(numbers)
        publisher = MqttClient(place, f"soak-retainer-{number}")
        sent = bodies.some(10)
        for at, body in enumerate(sent):
            publisher.publish(f"soak/retained/{number}/{at}", body, 1, retain=True)
        reader = MqttClient(place, f"soak-reader-{number}")
        reader.subscribe(f"soak/retained/{number}/#", 1)
        came = reader.receive(len(sent))
        reader.close()
        for at in range(len(sent)):
            publisher.publish(f"soak/retained/{number}/{at}", b"", 1, retain=True)
        publisher.close()
        place.ledger.settle("retained", sent, came)

    return work


def wills(place: Place) -> Work:
    """Reset clients with wills; each will arrives once."""
    bodies, numbers = Bodies("wills"), count()

    def work() -> None:
        number = next(numbers)
        topic = f"soak/wills/{number}"
        watcher = MqttClient(place, f"soak-watcher-{number}")
        watcher.subscribe(topic, 1)
        sent = bodies.some(3)
        for at, body in enumerate(sent):
            MqttClient(place, f"soak-mortal-{number}-{at}", will=(topic, body)).tear()
        came = watcher.receive(len(sent))
        watcher.close()
        place.ledger.settle("wills", sent, came)

    return work


def transactions(place: Place) -> Work:
    """Commit a STOMP transaction, abort another, and reset the connection during a third."""
    bodies, numbers = Bodies("transactions"), count()

    def work() -> None:
        destination = f"destination:/queue/soak.tx.{next(numbers)}"
        sender, receiver = StompClient(place), StompClient(place)
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
        sender.tear()
        receiver.close()
        place.ledger.settle("transactions", sent, came)

    return work


def dead_letters(place: Place) -> Work:
    """Let messages expire into another queue by a policy that is set and deleted over HTTP."""
    bodies, numbers = Bodies("dead letters"), count()

    def work() -> None:
        number = next(numbers)
        living, dead, policy = f"soak.living.{number}", f"soak.dead.{number}", f"policies/%2F/soak-{number}"
        with place.channel() as channel:
            for name in (living, dead):
                channel.queue_declare(name, durable=True)
            sent = bodies.some(20)
            for body in sent:
                channel.basic_publish("", living, body, _PERSISTENT)
            definition = {"message-ttl": 50, "dead-letter-exchange": "", "dead-letter-routing-key": dead}
            fields = {"pattern": f"^{living}$".replace(".", "\\."), "definition": definition, "apply-to": "queues"}
            place.api("PUT", policy, fields)
            came = drain(channel, dead, len(sent))
            place.api("DELETE", policy)
            for name in (living, dead):
                channel.queue_delete(name)
        place.ledger.settle("dead letters", sent, came)

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
