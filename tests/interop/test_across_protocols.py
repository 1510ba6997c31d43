"""stomp.py, pika and paho-mqtt with one gateway: shared queues and topics, and translated properties."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.amqp_clients.pika_client import parameters, wait_for
from tests.interop.mqtt_clients.paho_client import V5, V311, Paho
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.interop.stomp_clients.stomp_server import StompServer


@pytest.fixture
def stomp_client(whole_gateway: StompServer, stomp: Callable[..., Stomp]) -> Stomp:
    return stomp(at=whole_gateway).connect()


@pytest.fixture
def mqtt_client(whole_gateway: StompServer, name: str) -> Iterator[Paho]:
    client = Paho(whole_gateway.mqtt, V5, name)
    client.connect()
    yield client
    client.close()


@pytest.fixture
def amqp(whole_gateway: StompServer) -> Iterator[BlockingChannel]:
    connection = pika.BlockingConnection(parameters(whole_gateway.amqp))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    if connection.is_open:
        connection.close()


Got = tuple[pika.spec.Basic.Deliver, pika.BasicProperties, bytes]


def take(channel: BlockingChannel, queue: str, count: int) -> list[Got]:
    """Wait for the next ``count`` messages of a queue."""
    arrived: list[Got] = []
    tag = channel.basic_consume(queue, lambda _c, deliver, fields, body: arrived.append((deliver, fields, body)), True)
    wait_for(channel.connection, lambda: len(arrived) >= count)
    channel.basic_cancel(tag)
    return arrived


def take_one(channel: BlockingChannel, queue: str) -> Got:
    """Wait for the only message of a queue."""
    [message] = take(channel, queue, 1)
    return message


# ---------------------------------------------------------------- STOMP and AMQP


def test_amqp_receives_a_message_from_stomp(stomp_client: Stomp, amqp: BlockingChannel, name: str) -> None:
    fields = {
        "content-type": "text/plain",
        "content-encoding": "gzip",
        "correlation-id": "c",
        "type": "t",
        "app-id": "a",
    }
    more = {"priority": "3", "persistent": "true", "timestamp": "1709208000", "amqp-message-id": "m", "colour": "blue"}
    stomp_client.send(f"/queue/{name}", "hello", **fields, **more, expiration="60000")
    deliver, properties, body = take_one(amqp, name)
    assert (deliver.exchange, deliver.routing_key, body) == ("", name, b"hello")
    received_fields = properties.__dict__
    assert [received_fields[field.replace("-", "_")] for field in fields] == list(fields.values())
    assert (properties.priority, properties.delivery_mode, properties.timestamp) == (3, 2, 1_709_208_000)
    assert (properties.message_id, properties.expiration) == ("m", "60000")
    assert properties.headers == {"colour": "blue"}


def test_stomp_receives_a_message_from_amqp(stomp_client: Stomp, amqp: BlockingChannel, name: str) -> None:
    stomp_client.subscribe(f"/queue/{name}")
    headers = {
        "colour": "blue",
        "n": 7,
        "flag": True,
        "raw": b"\xff",
        "list": [1],
        "when": datetime(2024, 2, 29, tzinfo=UTC),
    }
    properties = pika.BasicProperties(
        content_type="text/plain", delivery_mode=2, priority=3, correlation_id="c", reply_to="answers", headers=headers
    )
    amqp.basic_publish("", name, "größe: 3 µm".encode(), properties)
    message = stomp_client.next()
    assert message.body.decode() == "größe: 3 µm"
    fields = message.headers
    assert (fields["destination"], fields["redelivered"]) == (f"/queue/{name}", "false")
    assert (fields["content-type"], fields["persistent"], fields["priority"]) == ("text/plain", "true", "3")
    assert (fields["correlation-id"], fields["reply-to"]) == ("c", "/reply-queue/answers")
    assert (fields["colour"], fields["n"]) == ("blue", "7")
    assert not {"flag", "raw", "list", "when"} & fields.keys()


def test_a_stomp_send_declares_a_durable_queue(stomp_client: Stomp, amqp: BlockingChannel, name: str) -> None:
    stomp_client.send(f"/queue/{name}")
    assert amqp.queue_declare(name, durable=True).method.message_count == 1


def test_stomp_and_amqp_consumers_share_a_queue(stomp_client: Stomp, amqp: BlockingChannel, name: str) -> None:
    arrived: list[bytes] = []
    stomp_client.subscribe(f"/queue/{name}", ack="client-individual", prefetch_count="1")
    amqp.basic_qos(prefetch_count=1)
    amqp.basic_consume(name, lambda _c, _d, _p, body: arrived.append(body))
    for number in range(2):
        stomp_client.send(f"/queue/{name}", str(number))
    wait_for(amqp.connection, lambda: arrived)
    assert {arrived[0], stomp_client.next().body} == {b"0", b"1"}


def test_stomp_can_send_and_subscribe_to_an_amqp_exchange(
    stomp_client: Stomp, amqp: BlockingChannel, name: str
) -> None:
    amqp.exchange_declare(name, "direct", auto_delete=True)
    amqp.queue_declare(f"{name}-q", exclusive=True)
    amqp.queue_bind(f"{name}-q", name, "k")
    stomp_client.subscribe(f"/exchange/{name}/k")
    stomp_client.send(f"/exchange/{name}/k", "to both")
    assert take_one(amqp, f"{name}-q")[2] == b"to both"
    message = stomp_client.next()
    assert (message.body, message.headers["destination"]) == (b"to both", f"/exchange/{name}/k")


def test_an_amqp_server_replies_to_a_stomp_request(stomp_client: Stomp, amqp: BlockingChannel, name: str) -> None:
    stomp_client.send(f"/queue/{name}", "question", reply_to="/temp-queue/answers", correlation_id="1")
    _, asked, _ = take_one(amqp, name)
    answer = pika.BasicProperties(correlation_id=asked.correlation_id)
    amqp.basic_publish("", str(asked.reply_to), b"answer", answer)
    message = stomp_client.next()
    assert (message.body, message.headers["correlation-id"]) == (b"answer", "1")


def test_a_stomp_server_replies_to_an_amqp_request(stomp_client: Stomp, amqp: BlockingChannel, name: str) -> None:
    stomp_client.subscribe(f"/queue/{name}")
    answers: list[bytes] = []
    amqp.basic_consume("amq.rabbitmq.reply-to", lambda _c, _d, _p, body: answers.append(body), auto_ack=True)
    amqp.basic_publish("", name, b"question", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    stomp_client.send(stomp_client.next().headers["reply-to"], "answer")
    wait_for(amqp.connection, lambda: answers)
    assert answers == [b"answer"]


# ---------------------------------------------------------------- dead letters


def test_stomp_receives_the_reason_of_a_dead_letter(stomp_client: Stomp, amqp: BlockingChannel, name: str) -> None:
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    amqp.queue_declare(name, exclusive=True, arguments=dead)
    stomp_client.subscribe(f"/queue/{name}-dead")
    amqp.basic_publish("", name, b"no", pika.BasicProperties(headers={"colour": "blue"}))
    method, _, _ = amqp.basic_get(name)
    assert method is not None
    amqp.basic_reject(method.delivery_tag, requeue=False)
    message = stomp_client.next()
    fields = message.headers
    assert (message.body, fields["colour"], fields["destination"]) == (b"no", "blue", f"/queue/{name}-dead")
    assert (fields["x-first-death-queue"], fields["x-first-death-reason"]) == (name, "rejected")
    [death] = json.loads(fields["x-death"])
    assert (death["queue"], death["reason"], death["count"], death["exchange"]) == (name, "rejected", 1, "")
    assert death["routing-keys"] == [name]


@pytest.mark.parametrize("reason", ["rejected", "expired", "maxlen"])
def test_amqp_receives_the_reason_of_a_dead_letter_from_stomp(
    stomp_client: Stomp, amqp: BlockingChannel, name: str, reason: str
) -> None:
    amqp.queue_declare(f"{name}-dead", exclusive=True)
    limits = {"rejected": {}, "expired": {"x_message_ttl": "1"}, "maxlen": {"x_max_length": "0"}}[reason]
    dead = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": f"{name}-dead", **limits}
    stomp_client.send(f"/queue/{name}", "dies", colour="blue", **dead)
    if reason == "rejected":
        stomp_client.subscribe(f"/queue/{name}", ack="client-individual", **dead)
        stomp_client.nack(stomp_client.next(), requeue="false")
    _, properties, body = take_one(amqp, f"{name}-dead")
    assert body == b"dies"
    assert properties.headers is not None
    assert properties.headers["colour"] == "blue"
    assert [(death["queue"], death["reason"]) for death in properties.headers["x-death"]] == [(name, reason)]


def test_a_message_can_be_dead_lettered_twice_through_stomp(stomp_client: Stomp, name: str) -> None:
    dead = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": f"{name}-two"}
    stomp_client.subscribe(f"/queue/{name}-two", id="two", x_dead_letter_exchange="", ack="client-individual",
                           x_dead_letter_routing_key=f"{name}-three")  # fmt: skip
    stomp_client.subscribe(f"/queue/{name}-three", id="three")
    stomp_client.subscribe(f"/queue/{name}", id="one", ack="client-individual", **dead)
    stomp_client.send(f"/queue/{name}", "dies")
    stomp_client.nack(stomp_client.next(), requeue="false")
    stomp_client.nack(stomp_client.next(), requeue="false")
    fields = stomp_client.next().headers
    assert [death["queue"] for death in json.loads(fields["x-death"])] == [f"{name}-two", name]
    assert (fields["x-first-death-queue"], fields["x-last-death-queue"]) == (name, f"{name}-two")


# ---------------------------------------------------------------- STOMP and MQTT


def test_a_topic_of_mqtt_is_received_by_stomp(stomp_client: Stomp, mqtt_client: Paho, name: str) -> None:
    stomp_client.subscribe(f"/topic/{name}.*.state")
    mqtt_client.publish(f"{name}/lamp/state", "on", qos=1, ContentType="text/plain", UserProperty=[("colour", "blue")])
    message = stomp_client.next()
    assert (message.body, message.headers["destination"]) == (b"on", f"/topic/{name}.lamp.state")
    assert (message.headers["content-type"], message.headers["colour"]) == ("text/plain", "blue")
    assert message.headers["persistent"] == "true"


def test_a_topic_of_stomp_is_received_by_mqtt(stomp_client: Stomp, mqtt_client: Paho, name: str) -> None:
    mqtt_client.subscribe(f"{name}/+/state", qos=1)
    stomp_client.send(
        f"/topic/{name}.lamp.state",
        "on",
        content_type="text/plain",
        correlation_id="c",
        colour="blue",
        persistent="true",
    )
    message = mqtt_client.next()
    assert (message.topic, message.payload, message.qos) == (f"{name}/lamp/state", b"on", 1)
    assert message.properties is not None
    assert (message.properties.ContentType, message.properties.CorrelationData) == ("text/plain", b"c")
    assert ("colour", "blue") in message.properties.UserProperty


def test_a_client_of_mqtt_3_receives_from_stomp(stomp_client: Stomp, whole_gateway: StompServer, name: str) -> None:
    old = Paho(whole_gateway.mqtt, V311, f"{name}-old")
    old.connect()
    try:
        old.subscribe(f"{name}/#")
        stomp_client.send(f"/topic/{name}.a.b", bytes(range(256)))
        message = old.next()
        assert (message.topic, message.payload) == (f"{name}/a/b", bytes(range(256)))
    finally:
        old.close()


def test_a_durable_subscription_of_stomp_stores_messages_of_mqtt(
    stomp_client: Stomp, mqtt_client: Paho, stomp: Callable[..., Stomp], whole_gateway: StompServer, name: str
) -> None:
    durable = {"durable": "true", "auto_delete": "false"}
    stomp_client.subscribe(f"/topic/{name}.#", id=name, **durable)
    stomp_client.disconnect()
    mqtt_client.publish(f"{name}/a", "meanwhile", qos=1)
    again = stomp(at=whole_gateway).connect()
    again.subscribe(f"/topic/{name}.#", id=name, **durable)
    assert again.next().body == b"meanwhile"
    again.unsubscribe(id=name, destination=f"/topic/{name}.#", **durable)


def test_a_session_of_mqtt_stores_messages_of_stomp(stomp_client: Stomp, whole_gateway: StompServer, name: str) -> None:
    sensor = Paho(whole_gateway.mqtt, V5, f"{name}-kept", keeps_session=True)
    sensor.connect()
    sensor.subscribe(f"{name}/a", qos=1)
    sensor.disconnect()
    stomp_client.send(f"/topic/{name}.a", "meanwhile", persistent="true")
    sensor = Paho(whole_gateway.mqtt, V5, f"{name}-kept", keeps_session=True)
    assert sensor.connect().is_session_present
    try:
        assert sensor.next().payload == b"meanwhile"
        sensor.disconnect(SessionExpiryInterval=0)
    finally:
        sensor.close()


# ---------------------------------------------------------------- all three


def test_a_message_of_one_protocol_is_received_by_all_three(
    stomp_client: Stomp, mqtt_client: Paho, amqp: BlockingChannel, name: str
) -> None:
    stomp_client.subscribe(f"/topic/{name}.#")
    mqtt_client.subscribe(f"{name}/#", qos=1)
    amqp.queue_declare(name, exclusive=True)
    amqp.queue_bind(name, "amq.topic", f"{name}.#")
    stomp_client.send(f"/topic/{name}.stomp", "one")
    mqtt_client.publish(f"{name}/mqtt", "two", qos=1)
    amqp.basic_publish("amq.topic", f"{name}.amqp", b"three")
    expected = [("stomp", b"one"), ("mqtt", b"two"), ("amqp", b"three")]
    by_stomp = [stomp_client.next() for _ in range(3)]
    assert [(each.headers["destination"], each.body) for each in by_stomp] == [
        (f"/topic/{name}.{key}", body) for key, body in expected
    ]
    by_mqtt = [mqtt_client.next() for _ in range(3)]
    assert [(each.topic, each.payload) for each in by_mqtt] == [(f"{name}/{key}", body) for key, body in expected]
    by_amqp = take(amqp, name, 3)
    assert [(deliver.routing_key, body) for deliver, _, body in by_amqp] == [
        (f"{name}.{key}", body) for key, body in expected
    ]
