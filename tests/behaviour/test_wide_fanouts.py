"""A message for very many queues: offered in slices, one step of the store, confirmed when all have it."""

from typing import Any

import pytest
from pamqp import commands

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.kernel.routing.router import Walk
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing.broker import Recipient, header_of
from tests.clocks import TickingClock
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import publish, wire
from tests.protocols.broker_harness import BrokerHarness
from tests.protocols.mqtt.dialogue import Gateway as MqttGateway
from tests.protocols.mqtt.packets import session_expiry
from tests.protocols.stomp.dialogue import Gateway as StompGateway
from tests.protocols.stomp.dialogue import frame, receipt
from tests.step_store import StepStore

QUEUES = MOST_QUEUES + 500


def bind_many(vhost: VirtualHost, exchange: str = "amq.fanout", *, is_durable: bool = True, **arguments: Any) -> None:
    """Bind very many queues, and find the route to them, so that the first slice offers messages."""
    source = vhost.exchange(exchange)
    for number in range(QUEUES):
        queue = vhost.declare_queue(f"q{number}", is_durable=is_durable, arguments=arguments or None)
        vhost.bind(source, queue, "k")
    walk = vhost.find_route(source, Message(exchange, "k", header_of(), b""))
    assert isinstance(walk, Walk)
    for _ in vhost.walking(walk):
        pass


def taken(gateway: BrokerHarness) -> int:
    """Return the number of queues that have a message."""
    return sum(len(queue) > 0 for queue in gateway.vhost.queue_by_name.values())


@pytest.fixture
def peer(gateway: Gateway) -> Peer:
    peer = gateway.connect()
    peer.send(commands.Confirm.Select())
    peer.receive()
    return peer


def read_on(peer: Peer, clock: TickingClock) -> list[str]:
    """Run the pending work and handle the rest of the input; return the frames that the peer receives."""
    clock.advance(0)
    peer.gateway.turn.go_on()
    return peer.receive()


def test_a_turn_offers_a_message_to_some_of_the_queues(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    bind_many(gateway.vhost)
    gateway.settle()
    store.sizes.clear()
    peer.io.take(wire(publish("amq.fanout", "k", delivery_mode=2)))
    assert peer.receive() == []
    assert 0 < taken(gateway) < QUEUES // 2
    assert store.sizes == []
    assert read_on(peer, clock) == ["Basic.Ack(delivery_tag=1, multiple=False)"]
    assert taken(gateway) == QUEUES
    assert [size for size in store.sizes if size > 1] == [QUEUES + 1]


def test_a_crash_in_between_discards_the_message(gateway: Gateway, peer: Peer, store: StepStore) -> None:
    bind_many(gateway.vhost)
    peer.io.take(wire(publish("amq.fanout", "k", delivery_mode=2)))
    gateway.settle()
    assert taken(gateway) > 0
    assert taken(Gateway(store=store.reopened())) == 0


def test_later_input_of_the_connection_waits_and_that_of_others_does_not(
    gateway: Gateway, peer: Peer, clock: TickingClock
) -> None:
    bind_many(gateway.vhost)
    other = gateway.connect()
    peer.io.take(wire(publish("amq.fanout", "k", b"1"), publish("", f"q{QUEUES - 1}", b"2")))
    peer.io.take(wire(publish("", f"q{QUEUES - 1}", b"3")))
    other.io.take(wire(publish("", f"q{QUEUES - 1}", b"0")))
    gateway.settle()
    assert len(gateway.vhost.queue(f"q{QUEUES - 1}")) == 1
    assert [line.split("(")[0] for line in read_on(peer, clock)] == ["Basic.Ack"] * 2
    other.send(commands.Basic.Consume(queue=f"q{QUEUES - 1}", no_ack=True))
    assert [received.body for received in other.receive_frames() if received.body] == [b"0", b"1", b"2", b"3"]


def test_a_rejection_by_one_queue_is_a_nack_after_all_offers(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    bind_many(gateway.vhost)
    full = gateway.vhost.declare_queue("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    gateway.vhost.bind(gateway.vhost.exchange("amq.fanout"), full, "k")
    peer.io.take(wire(publish("amq.fanout", "k"), publish("", "q1")))
    assert peer.receive() == []
    received = read_on(peer, clock)
    assert [line.split(", ")[0] for line in received] == ["Basic.Nack(delivery_tag=1", "Basic.Ack(delivery_tag=2"]


def test_the_message_is_consumed_meanwhile_and_stays_consumed(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    bind_many(gateway.vhost)
    other = gateway.connect()
    peer.io.take(wire(publish("amq.fanout", "k", delivery_mode=2)))
    other.send(commands.Basic.Get(queue="q0", no_ack=True))
    assert "GetOk" in other.receive()[0]
    read_on(peer, clock)
    assert taken(Gateway(store=store.reopened())) == QUEUES - 1


def test_queues_deleted_meanwhile_are_skipped(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    bind_many(gateway.vhost)
    peer.io.take(wire(publish("amq.fanout", "k", delivery_mode=2)))
    gateway.vhost.delete_queue(gateway.vhost.queue(f"q{QUEUES - 1}"))
    assert len(read_on(peer, clock)) == 1
    assert taken(gateway) == QUEUES - 1


def test_streams_append_it_in_the_turn_of_the_step(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    stream = gateway.vhost.declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
    gateway.vhost.bind(gateway.vhost.exchange("amq.fanout"), stream, "k")
    bind_many(gateway.vhost)
    peer.io.take(wire(publish("amq.fanout", "k", delivery_mode=2)))
    peer.receive()
    assert len(stream) == 0
    assert len(read_on(peer, clock)) == 1
    assert len(stream) == 1


def test_a_publish_completes_when_its_publisher_disconnects(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    bind_many(gateway.vhost)
    peer.io.take(wire(publish("amq.fanout", "k"), publish("", "q1")))
    peer.lose()
    clock.advance(0)
    gateway.turn.go_on()
    assert taken(gateway) == QUEUES


def test_a_message_without_a_connection_blocks_no_client(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    bind_many(gateway.vhost)
    gateway.vhost.publish(gateway.vhost.exchange("amq.fanout"), Message("amq.fanout", "k", header_of(), b""))
    assert taken(gateway) < QUEUES
    peer.io.take(wire(publish("", "q1"), publish("", "q1")))
    assert len(peer.receive()) == 1
    clock.advance(0)
    assert taken(gateway) == QUEUES


# Transactions


def test_a_commit_offers_its_messages_to_some_of_the_queues_in_a_turn(
    gateway: Gateway, store: StepStore, clock: TickingClock
) -> None:
    bind_many(gateway.vhost)
    peer = gateway.connect()
    held = [publish("", "q0", b"1", delivery_mode=2), publish("amq.fanout", "k", b"2", delivery_mode=2)]
    peer.send(commands.Tx.Select(), *held, publish("", "q1", b"3", delivery_mode=2))
    peer.receive()
    store.sizes.clear()
    peer.send(commands.Tx.Commit())
    assert peer.receive() == []
    assert 0 < taken(gateway) < QUEUES // 2
    assert len(gateway.vhost.queue("q1")) == 1
    assert store.sizes == []
    assert taken(Gateway(store=store.reopened())) == 0
    clock.advance(0)
    assert peer.receive() == ["Tx.CommitOk()"]
    assert [size for size in store.sizes if size > 1] == [2 + QUEUES + 1 + 2]
    assert [len(gateway.vhost.queue(name)) for name in ("q0", "q1", f"q{QUEUES - 1}")] == [2, 2, 1]


def test_a_small_commit_is_done_in_one_turn(gateway: Gateway, store: StepStore) -> None:
    gateway.vhost.declare_queue("q", is_durable=True)
    peer = gateway.connect()
    peer.send(commands.Tx.Select(), publish("", "q", delivery_mode=2), publish("", "nowhere", mandatory=True))
    peer.receive()
    store.sizes.clear()
    peer.send(commands.Tx.Commit())
    assert [line.split("(")[0] for line in peer.receive()] == ["Basic.Return", "Tx.CommitOk"]
    assert store.sizes == [2]


# The other protocols


@pytest.mark.parametrize("qos", [1, 2])
def test_mqtt_acknowledges_when_all_queues_have_it(clock: TickingClock, qos: int) -> None:
    gateway = MqttGateway(clock=clock)
    bind_many(gateway.vhost, "amq.topic")
    client = gateway.client("c")
    client.io.take(client.write.publish("k", b"1", qos=qos, id=1) + client.write.publish("k", b"2", qos=qos, id=2))
    assert client.receive() == []
    answers = []
    for _ in range(2):
        clock.advance(0)
        answers += client.receive()
        gateway.turn.go_on()
    assert [answer.split(" ")[0] for answer in answers] == ["PUBREC" if qos == 2 else "PUBACK"] * 2
    assert taken(gateway) == QUEUES


def test_a_crash_in_between_forgets_the_packet_identifier_with_the_message(
    clock: TickingClock, store: StepStore
) -> None:
    """Found by the simulation: the publisher sent the message again, and the broker took it for a repetition."""
    gateway = MqttGateway(store=store, clock=clock)
    bind_many(gateway.vhost, "amq.topic")
    client = gateway.client("c", is_clean=False, expiry=60)
    client.io.take(client.write.publish("k", b"1", qos=2, id=1))
    assert client.receive() == []  # other turns are stored meanwhile
    gateway = gateway.crashed()
    client = gateway.client("c", is_clean=False, expiry=60)
    client.io.take(client.write.publish("k", b"1", qos=2, id=1, dup=True))
    clock.advance(0)
    assert client.receive() == ["PUBREC #1"]
    assert taken(gateway) == QUEUES


class Forwarder(Recipient):
    """A receiver within the broker that forwards what it gets to very many queues, as a bridge could."""

    def __init__(self, vhost: VirtualHost) -> None:
        super().__init__()
        self._vhost = vhost

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: QueuedMessage | None) -> None:
        super().deliver(consumer, message, redelivered, entry)
        forwarded = Message("amq.topic", "k", header_of(is_persistent=True), message.body)
        self._vhost.publish(self._vhost.exchange("amq.topic"), forwarded, self.origin)


def test_a_crash_within_a_publish_that_a_receiver_makes_keeps_the_packet_identifier(
    clock: TickingClock, store: StepStore
) -> None:
    """The identifier was stored with the message of the receiver: the publisher's own was published twice."""
    gateway = MqttGateway(store=store, clock=clock)
    bind_many(gateway.vhost, "amq.topic")
    own = gateway.vhost.declare_queue("own", is_durable=True)
    gateway.vhost.bind(gateway.vhost.exchange("amq.topic"), own, "own")
    client = gateway.client("c", is_clean=False, expiry=60)
    Forwarder(gateway.vhost).consume(own)
    client.io.take(client.write.publish("own", b"1", qos=2, id=1))
    client.receive()  # other turns are stored meanwhile
    gateway = gateway.crashed()
    assert (len(gateway.vhost.queue("own")), taken(gateway)) == (1, 1)
    client = gateway.client("c", is_clean=False, expiry=60)
    assert client.publish("own", b"1", qos=2, id=1, dup=True) == ["PUBREC #1"]
    assert len(gateway.vhost.queue("own")) == 1


def test_a_publish_that_is_sent_again_meanwhile_is_acknowledged_when_all_queues_have_the_first(
    clock: TickingClock, store: StepStore
) -> None:
    gateway = MqttGateway(store=store, clock=clock)
    bind_many(gateway.vhost, "amq.topic")
    first = gateway.client("c", is_clean=False, expiry=60)
    first.io.take(first.write.publish("k", b"1", qos=2, id=1))
    second = gateway.new_client()
    second.send(second.write.connect("c", is_clean=False, properties=session_expiry(60)))
    second.io.take(second.write.publish("k", b"1", qos=2, id=1, dup=True))
    assert [line.split(" ")[0] for line in second.receive_now()] == ["CONNACK"]
    gateway.store.commit()
    assert second.receive_now() == []
    assert taken(gateway) < QUEUES
    clock.advance(0)
    assert second.receive() == ["PUBREC #1"]
    assert taken(gateway) == QUEUES
    assert {len(queue) for queue in gateway.vhost.queue_by_name.values()} == {1}
    again = gateway.crashed().client("c", is_clean=False, expiry=60)
    assert again.publish("k", b"1", qos=2, id=1, dup=True) == ["PUBREC #1"]
    assert {len(queue) for queue in again.gateway.vhost.queue_by_name.values()} == {1}


def test_mqtt_releases_the_identifier_of_a_refused_message(clock: TickingClock) -> None:
    gateway = MqttGateway(clock=clock)
    bind_many(gateway.vhost, "amq.topic", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    client = gateway.client("c")
    for _ in range(2):
        client.io.take(client.write.publish("k", b"1", qos=2, id=1))
        clock.advance(0)
        gateway.turn.go_on()
        answers = client.receive()
        client.request(client.write.pubrel(1)) if "97" not in answers[0] else None
    assert not client.machine.conversation.publishing._qos2_state.received  # type: ignore[union-attr]


def test_stomp_sends_the_receipt_when_all_queues_have_it(clock: TickingClock) -> None:
    gateway = StompGateway(clock=clock)
    bind_many(gateway.vhost)
    client = gateway.client()
    destination = {"destination": "/exchange/amq.fanout/k"}
    client.io.take(frame("SEND", {**destination, "receipt": "1"}) + frame("SEND", {**destination, "receipt": "2"}))
    assert client.receive_frames() == []
    answers = []
    for _ in range(2):
        clock.advance(0)
        answers += client.receive_frames()
        assert {len(queue) for queue in gateway.vhost.queue_by_name.values()} == {len(answers)}
        gateway.turn.go_on()
    assert answers == [receipt("1"), receipt("2")]


def test_a_stomp_commit_offers_its_messages_to_some_of_the_queues_in_a_turn(
    store: StepStore, clock: TickingClock
) -> None:
    gateway = StompGateway(clock=clock, store=store)
    bind_many(gateway.vhost)
    client = gateway.client()
    client.command("BEGIN", transaction="t")
    wide = {"destination": "/exchange/amq.fanout/k", "transaction": "t", "persistent": "true"}
    client.command("SEND", {**wide, "receipt": "1"})
    client.command("SEND", {"destination": "/amq/queue/q0", "transaction": "t", "persistent": "true", "receipt": "2"})
    store.sizes.clear()
    client.io.take(frame("COMMIT", {"transaction": "t", "receipt": "3"}) + frame("SEND", {**wide, "transaction": "u"}))
    assert client.receive_frames() == []
    assert 0 < taken(gateway) < QUEUES // 2
    assert store.sizes == []
    clock.advance(0)
    assert sorted(answer["receipt-id"] for answer in client.receive_frames()) == ["1", "2", "3"]
    assert [size for size in store.sizes if size > 1] == [1 + QUEUES + 2]
    assert len(gateway.vhost.queue("q0")) == 2
    gateway.turn.go_on()
    assert [answer.verb for answer in client.receive_frames()] == ["ERROR", "closed"], "the SEND after it was read now"


def test_a_stomp_commit_without_many_queues_is_done_in_one_turn(store: StepStore, clock: TickingClock) -> None:
    gateway = StompGateway(clock=clock, store=store)
    gateway.vhost.declare_queue("q", is_durable=True)
    client = gateway.client()
    client.command("BEGIN", transaction="t")
    for number in range(500):
        client.command("SEND", destination="/amq/queue/q", transaction="t", persistent="true", receipt=str(number))
    store.sizes.clear()
    assert len(client.command("COMMIT", transaction="t", receipt="done")) == 501
    assert [size for size in store.sizes if size > 1] == [1000]


@pytest.mark.source
def test_an_error_of_a_queue_is_contained(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    bind_many(gateway.vhost, is_durable=False)
    broken: Any = gateway.vhost.queue(f"q{QUEUES - 1}")
    broken.ready = None
    peer.io.take(wire(publish("amq.fanout", "k")))
    assert read_on(peer, clock) == ["Basic.Nack(delivery_tag=1, multiple=False, requeue=True)"]
    assert len(gateway.vhost.queue("q0")) == 1
