"""Interceptors inspect, change, refuse and divert the messages of all protocols; what clients see of it."""

from collections.abc import Callable

import pytest
from pamqp import commands

from gateway.api import Decision, Diversion, Interceptor, Message, Origin, Refusal, RefusalCause
from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway_mqtt.codec.properties import PropertyId
from tests.protocols.amqp.frames import publish
from tests.protocols.mqtt.packets import Will
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, all_of, fetched, properties_of, published, queue

DROPPED = "the body says no"


class Gate(Interceptor):
    """Refuses bodies that begin with ``no``, diverts ``odd`` ones, and stamps the others; shouts on delivery."""

    def __init__(self, cause: RefusalCause = RefusalCause.POLICY) -> None:
        self.origins: list[Origin] = []
        self._cause = cause

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        self.origins.append(origin)
        if message.body.startswith(b"no"):
            return Refusal(DROPPED, self._cause)
        if message.body.startswith(b"odd"):
            return Diversion("", "quarantine", message.edited({"x-odd": message.exchange}))
        return message.edited({"x-stamp": "in"}, body=message.body + b"!")

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        return message.edited({"x-out": queue}, body=message.body.upper())


class Failing(Interceptor):
    """Fails at each call."""

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        raise RuntimeError("broken")

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        raise RuntimeError("broken")


class FailingOpen(Failing):
    on_error = "pass"


@pytest.fixture
def gateway() -> AllProtocolsBroker:
    gateway = AllProtocolsBroker()
    gateway.peer().send(*queue("quarantine"), *queue("q", "t.#")).receive()
    return gateway


def use(gateway: AllProtocolsBroker, *interceptors: Interceptor) -> None:
    gateway.vhost.interception.apply(interceptors)
    gateway.settle()


def events_of(gateway: AllProtocolsBroker) -> list[Event]:
    events: list[Event] = []
    gateway.broker.events.subscribe(events.append)
    return events


def by_amqp(gateway: AllProtocolsBroker, body: bytes) -> list[str]:
    return gateway.peer().send(published("t.1", body)).receive()


def by_mqtt(gateway: AllProtocolsBroker, body: bytes) -> list[str]:
    return gateway.client("sensor").publish("t/1", body, qos=1, id=7)


def by_stomp(gateway: AllProtocolsBroker, body: bytes) -> list[str]:
    return [str(each) for each in gateway.stomp().publish("/topic/t.1", body, {"receipt": "r"})]


def publishing(gateway: AllProtocolsBroker, send: "Send") -> Callable[[bytes], object]:
    """Return a function that publishes over one connection of a protocol."""
    peer, sensor, shop = gateway.peer(), gateway.client("s"), gateway.stomp()
    sends: dict[Send, Callable[[bytes], object]] = {
        by_amqp: lambda body: peer.send(published("t.1", body)).receive(),
        by_mqtt: lambda body: sensor.publish("t/1", body),
        by_stomp: lambda body: shop.publish("/topic/t.1", body),
    }
    return sends[send]


Send = Callable[[AllProtocolsBroker, bytes], list[str]]
PROTOCOLS = pytest.mark.parametrize("send", [by_amqp, by_mqtt, by_stomp])


@PROTOCOLS
def test_a_published_message_is_changed_for_all_queues(gateway: AllProtocolsBroker, send: Send) -> None:
    use(gateway, Gate())
    send(gateway, b"hi")
    received = fetched(gateway.peer(), "q")
    assert received.body == b"HI!"
    assert properties_of(received).headers["x-stamp"] == "in"
    assert properties_of(received).headers["x-out"] == "q"


@PROTOCOLS
def test_a_diverted_message_reaches_only_its_new_queue(gateway: AllProtocolsBroker, send: Send) -> None:
    use(gateway, Gate())
    send(gateway, b"odd")
    peer = gateway.peer()
    assert all_of(peer, "q") == []
    received = fetched(peer, "quarantine")
    assert received.body == b"ODD"
    assert properties_of(received).headers["x-odd"] == "amq.topic"


@PROTOCOLS
def test_a_refused_message_reaches_no_queue(gateway: AllProtocolsBroker, send: Send) -> None:
    use(gateway, Gate())
    send(gateway, b"no")
    assert all_of(gateway.peer(), "q") == []


class GateOf(Gate):
    """The gate for the messages of some exchanges."""

    def __init__(self, *exchanges: str) -> None:
        super().__init__()
        self.exchanges = exchanges


@PROTOCOLS
def test_an_interceptor_is_called_for_the_exchanges_that_it_declares_only(
    gateway: AllProtocolsBroker, send: Send
) -> None:
    inner, outer = GateOf("amq.topic", "other"), GateOf("other", "")
    use(gateway, outer, inner)
    publish_next = publishing(gateway, send)
    for body in (b"a", b"b", b"c"):
        publish_next(body)
    assert (len(outer.origins), len(inner.origins)) == (0, 3)
    assert all_of(gateway.peer(), "q") == [b"A!", b"B!", b"C!"]


@PROTOCOLS
def test_what_no_interceptor_declares_is_published_as_it_is(gateway: AllProtocolsBroker, send: Send) -> None:
    use(gateway, GateOf("other"), GateOf())
    publish_next = publishing(gateway, send)
    publish_next(b"no")
    publish_next(b"no")
    assert all_of(gateway.peer(), "q") == [b"NO", b"NO"]


def test_one_channel_publishes_to_exchanges_with_and_without_an_interceptor(gateway: AllProtocolsBroker) -> None:
    use(gateway, GateOf("amq.topic"))
    peer = gateway.peer()
    for _ in range(3):  # a publish that repeats the last one takes another way
        for exchange, key in (("amq.topic", "t.1"), ("", "q"), ("", "q"), ("", "q")):
            peer.send(publish(exchange, key, b"x")).receive()
    assert all_of(gateway.peer(), "q") == [b"X!", b"X", b"X", b"X"] * 3


@PROTOCOLS
def test_the_declared_exchanges_may_change_while_connections_are_open(gateway: AllProtocolsBroker, send: Send) -> None:
    publish_next = publishing(gateway, send)
    for gates, body in (([GateOf("other")], b"a"), ([GateOf("amq.topic")], b"b"), ([], b"c")):
        use(gateway, *gates)
        publish_next(body)
    assert all_of(gateway.peer(), "q") == [b"a", b"b!", b"c"]


def test_a_will_passes_the_interceptors_of_its_exchange_only(gateway: AllProtocolsBroker) -> None:
    topic, other = GateOf("amq.topic"), GateOf("other")
    use(gateway, other, topic)
    gateway.client("device", will=Will("t/1", b"gone")).lose()
    assert ([origin.client_id for origin in topic.origins], other.origins) == (["device"], [])


@PROTOCOLS
def test_interceptors_that_come_and_go_act_from_the_next_message_of_open_connections(
    gateway: AllProtocolsBroker, send: Send
) -> None:
    publish_next = publishing(gateway, send)
    publish_next(b"a")
    use(gateway, Gate())
    publish_next(b"b")
    publish_next(b"c")
    use(gateway)
    publish_next(b"d")
    assert all_of(gateway.peer(), "q") == [b"a", b"b!", b"c!", b"d"]


# What the publisher is told


def test_amqp_closes_the_channel_with_the_reason(gateway: AllProtocolsBroker) -> None:
    use(gateway, Gate())
    (closed,) = by_amqp(gateway, b"no")
    assert closed == f"Channel.Close 406 PRECONDITION_FAILED - {DROPPED} (60,40)"


def test_amqp_names_a_refusal_for_missing_access_as_such(gateway: AllProtocolsBroker) -> None:
    use(gateway, Gate(RefusalCause.ACCESS))
    (closed,) = by_amqp(gateway, b"no")
    assert closed == f"Channel.Close 403 ACCESS_REFUSED - {DROPPED} (60,40)"


def test_amqp_returns_a_mandatory_message_with_the_reason_and_a_nack(gateway: AllProtocolsBroker) -> None:
    use(gateway, Gate())
    peer = gateway.peer()
    peer.send(commands.Confirm.Select()).receive()
    peer.send(publish("amq.topic", "t.1", b"no", mandatory=True), publish("amq.topic", "t.1", b"yes", mandatory=True))
    returned, nack, ack = peer.receive_frames()
    assert isinstance(returned.method, commands.Basic.Return)
    assert (returned.method.reply_code, returned.method.reply_text) == (406, f"PRECONDITION_FAILED - {DROPPED}")
    assert returned.body == b"no"
    assert isinstance(nack.method, commands.Basic.Nack)
    assert nack.method.delivery_tag == 1
    assert isinstance(ack.method, commands.Basic.Ack)
    assert ack.method.delivery_tag == 2


def test_a_diverted_message_without_a_queue_is_unroutable(gateway: AllProtocolsBroker) -> None:
    use(gateway, Gate())
    peer = gateway.peer()
    peer.send(commands.Queue.Delete(0, "quarantine")).receive()
    (returned,) = peer.send(publish("amq.topic", "t.1", b"odd", mandatory=True)).receive_frames()
    assert isinstance(returned.method, commands.Basic.Return)
    assert returned.method.reply_code == 312


def test_a_refusal_in_a_transaction_of_amqp_ends_it(gateway: AllProtocolsBroker) -> None:
    use(gateway, Gate())
    peer = gateway.peer()
    peer.send(commands.Tx.Select()).receive()
    peer.send(published("t.1", b"first")).receive()
    (closed,) = peer.send(publish("amq.topic", "t.1", b"no", mandatory=True)).receive()
    assert DROPPED in closed
    assert all_of(gateway.peer(), "q") == []


def test_a_transaction_of_amqp_publishes_the_changed_messages(gateway: AllProtocolsBroker) -> None:
    gate = Gate()
    use(gateway, gate)
    peer = gateway.peer()
    peer.send(commands.Tx.Select()).receive()
    peer.send(published("t.1", b"one"), published("t.1", b"odd")).receive()
    assert len(gate.origins) == 2
    peer.send(commands.Tx.Commit()).receive()
    assert all_of(gateway.peer(), "q") == [b"ONE!"]
    assert all_of(gateway.peer(), "quarantine") == [b"ODD"]


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (RefusalCause.POLICY, "IMPLEMENTATION_SPECIFIC_ERROR"),
        (RefusalCause.PAYLOAD, "PAYLOAD_FORMAT_INVALID"),
        (RefusalCause.LIMIT, "QUOTA_EXCEEDED"),
        (RefusalCause.ACCESS, "NOT_AUTHORIZED"),
    ],
)
def test_mqtt_5_answers_with_the_reason(gateway: AllProtocolsBroker, cause: RefusalCause, reason: str) -> None:
    use(gateway, Gate(cause))
    sensor = gateway.client("sensor")
    (answer,) = sensor.request_frames(sensor.write.publish("t/1", b"no", qos=1, id=7))
    assert str(answer) == f"PUBACK #7 {reason}"
    assert dict(answer.properties)[PropertyId.REASON_STRING] == DROPPED
    assert sensor.publish("t/1", b"no", qos=2, id=8)[0].startswith(f"PUBREC #8 {reason}")
    assert sensor.publish("t/1", b"yes", qos=1, id=9) == ["PUBACK #9"]


@pytest.mark.parametrize("version", [4, 5])
def test_mqtt_ends_the_connection_where_it_has_no_answer(gateway: AllProtocolsBroker, version: int) -> None:
    use(gateway, Gate(RefusalCause.LIMIT))
    sensor = gateway.client("sensor", version=version)
    received = sensor.publish("t/1", b"no")
    assert received[-1] == "closed"
    assert version == 4 or received[0].startswith("DISCONNECT QUOTA_EXCEEDED")


def test_stomp_sends_an_error_with_the_reason(gateway: AllProtocolsBroker) -> None:
    use(gateway, Gate())
    shop = gateway.stomp()
    error = shop.publish("/topic/t.1", b"no")[0]
    assert (error.verb, error["message"]) == ("ERROR", "precondition_failed")
    assert DROPPED.encode() in error.body


def test_a_refusal_ends_a_transaction_of_stomp_and_requeues_what_it_acknowledged(gateway: AllProtocolsBroker) -> None:
    gateway.peer().send(publish("", "q", b"work")).receive()
    use(gateway, Gate())
    shop = gateway.stomp()
    (message,) = shop.subscribe("/amq/queue/q", ack="client-individual")
    shop.command("BEGIN", transaction="tx")
    shop.settle("ACK", message, {"transaction": "tx"})
    shop.publish("/topic/t.1", b"yes", {"transaction": "tx"})
    shop.publish("/topic/t.1", b"no", {"transaction": "tx"})
    assert shop.command("COMMIT", transaction="tx")[0].verb == "ERROR"
    assert all_of(gateway.peer(), "q") == [b"WORK"]


# Wills, retained messages, resends, streams


def test_retained_messages_are_kept_as_they_were_changed_and_not_if_they_were_refused_or_diverted(
    gateway: AllProtocolsBroker,
) -> None:
    use(gateway, Gate())
    sensor = gateway.client("sensor")
    sensor.publish("t/1", b"hi", retain=True)
    sensor.publish("t/2", b"odd", retain=True)
    sensor.publish("t/3", b"no", retain=True, qos=1, id=1)
    assert [message.body for message in gateway.vhost.retained.walk("t.#") if message is not None] == [b"hi!"]
    assert gateway.client("app", version=4).subscribe("t/#")[1:] == ["PUBLISH retain t/1 'HI!'"]


def test_wills_pass_the_interceptors_with_the_id_of_their_client(gateway: AllProtocolsBroker) -> None:
    gate = Gate()
    use(gateway, gate)
    events = events_of(gateway)
    for client_id, body in (("good", b"bye"), ("bad", b"no")):
        client = gateway.client(client_id, will=Will("t/1", body))
        client.lose()
        gateway.settle()
    assert all_of(gateway.peer(), "q") == [b"BYE!"]
    assert [origin.client_id for origin in gate.origins] == ["good", "bad"]
    assert [(event.name, event.details) for event in events if event.name.startswith("will")] == [
        ("will.refused", {"client_id": "bad", "reason": DROPPED})
    ]


def test_a_resent_publish_of_qos_2_is_not_inspected_again(gateway: AllProtocolsBroker) -> None:
    gate = Gate()
    use(gateway, gate)
    sensor = gateway.client("sensor")
    sensor.publish("t/1", b"hi", qos=2, id=1)
    assert sensor.publish("t/1", b"hi", qos=2, id=1, dup=True) == ["PUBREC #1"]
    assert len(gate.origins) == 1


def test_a_stream_delivers_changed_messages_with_their_offsets(gateway: AllProtocolsBroker) -> None:
    gateway.vhost.declare_queue("log", is_durable=True, arguments={"x-queue-type": "stream"})
    peer = gateway.peer()
    peer.send(publish("", "log", b"one"), publish("", "log", b"two")).receive()
    gateway.settle()
    use(gateway, Gate())
    arguments = {"x-stream-offset": "first"}
    peer.send(commands.Basic.Qos(0, 10), commands.Basic.Consume(0, "log", "tag", arguments=arguments)).receive()
    gateway.advance(0)
    received = [each for each in peer.receive_frames() if isinstance(each.method, commands.Basic.Deliver)]
    assert [(each.body, properties_of(each).headers["x-stream-offset"]) for each in received] == [
        (b"ONE", 0),
        (b"TWO", 1),
    ]
    assert peer.send(commands.Basic.Ack(2, True)).receive() == []


def test_consumers_that_were_there_before_get_changed_messages(gateway: AllProtocolsBroker) -> None:
    app, shop, peer = gateway.client("app", version=4), gateway.stomp(), gateway.peer()
    app.subscribe("t/#")
    shop.subscribe("/topic/t.#", ack="client")
    peer.send(commands.Basic.Consume(0, "q", "tag")).receive()
    use(gateway, Gate())
    by_amqp(gateway, b"hi")
    assert app.receive() == ["PUBLISH t/1 'HI!'"]
    (message,) = shop.receive_frames()
    assert message.body == b"HI!"
    assert shop.settle("ACK", message, {"receipt": "r"})[0].verb == "RECEIPT"
    (delivered,) = peer.receive_frames()
    assert delivered.body == b"HI!"
    use(gateway)
    by_amqp(gateway, b"hi")
    assert app.receive() == ["PUBLISH t/1 'hi'"]


# Faults


@PROTOCOLS
def test_a_failing_interceptor_refuses_messages_unless_it_declares_otherwise(
    gateway: AllProtocolsBroker, send: Send
) -> None:
    use(gateway, Failing())
    send(gateway, b"a")
    use(gateway, FailingOpen())
    send(gateway, b"b")
    assert all_of(gateway.peer(), "q") == [b"b"]
    assert gateway.broker.faults.count_by_kind["interceptor"] == 3


def test_a_message_diverted_to_no_exchange_is_a_fault(gateway: AllProtocolsBroker) -> None:
    class Lost(Interceptor):
        on_error = "pass"

        def on_publish(self, message: Message, origin: Origin) -> Decision:
            return Diversion("nowhere", "key")

    events = events_of(gateway)
    use(gateway, Lost())
    by_amqp(gateway, b"a")
    assert all_of(gateway.peer(), "q") == [b"a"]
    (fault,) = [event for event in events if event.name == FAULT]
    assert fault.details["error"] == "on_publish() diverts to the exchange 'nowhere', which does not exist"


def test_the_interceptors_of_another_virtual_host_see_nothing(gateway: AllProtocolsBroker) -> None:
    gate = Gate()
    gateway.broker.declare_vhost("other").interception.apply([gate])
    by_amqp(gateway, b"a")
    assert gate.origins == []
