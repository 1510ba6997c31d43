"""AMQP clients of a follower go on with the next leader: real clients, and two brokers in memory as leaders."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from twisted.internet.protocol import Factory

from gateway.net.forwarding.passing import ForwardingFactory
from gateway.net.forwarding.taking import ForwardedFactory
from gateway_amqp.resuming.relayed_connection import RelayedConnection
from gateway_amqp.server import AmqpServer
from tests.net.forwarding_nodes import SECRET, ForwardingNodes, leader_at
from tests.protocols.amqp.dialogue import Gateway


class BrokerFactory(Factory):
    """A listener of a broker in memory, which has the queue ``orders``."""

    noisy = False

    def __init__(self) -> None:
        self.gateway = Gateway()
        self.servers: list[AmqpServer] = []
        self.gateway.broker.vhost("/").declare_queue("orders", is_durable=True)
        self.gateway.settle()

    def buildProtocol(self, addr: object) -> AmqpServer:
        server = AmqpServer(self.gateway.settings, self.gateway.turn)
        self.servers.append(server)
        return server

    def end(self) -> None:
        """Break all connections, as the end of a process does."""
        for server in self.servers:
            transport: Any = server.transport
            transport.abortConnection()

    def stop(self) -> None:
        """Close all connections, as the orderly end of a node does."""
        self.gateway.broker.connections.force_close("broker forced connection closure with reason 'shutdown'")
        self.gateway.settle()

    def bodies(self, queue: str = "orders") -> list[bytes]:
        """Take all messages of a queue."""
        found: Any = self.gateway.broker.vhost("/").queue(queue)
        bodies = []
        while (entry := found.get()) is not None:
            bodies.append(bytes(entry.message.body))
        return bodies


class Leaders(ForwardingNodes):
    """A follower that remembers its clients, and two leaders, the first of which leads."""

    def __init__(self) -> None:
        super().__init__()
        self.brokers = [BrokerFactory(), BrokerFactory()]
        self.epoch = 1
        self.addresses = [self._leading(broker) for broker in self.brokers]
        self.address = self.addresses[0]
        self.follower = ForwardingFactory(
            "amqp",
            SECRET,
            lambda cell: leader_at(self.address, self.epoch),
            self.loop.reactor,
            self.clock,
            self.counts,
            "b",
            RelayedConnection,
        )
        self.port = self.listen(self.follower)

    def _leading(self, broker: BrokerFactory) -> tuple[str, int]:
        taking = ForwardedFactory(SECRET, lambda cell: {"amqp": broker}, self.clock)
        return "127.0.0.1", self.listen(taking)

    @property
    def gateways(self) -> list[Gateway]:
        return [broker.gateway for broker in self.brokers]

    def lose(self, *, in_order: bool = False) -> None:
        """Let the first leader end; no node leads."""
        self.address = None
        (self.brokers[0].stop if in_order else self.brokers[0].end)()

    def elect(self) -> None:
        """Let the second one lead."""
        self.epoch, self.address = 2, self.addresses[1]

    def connect_pika(self, **options: Any) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port, **options))

    def run(self, work: Callable[[], None], timeout_s: float = 30.0) -> None:
        """Do the work of a blocking client in a thread, while the brokers work."""
        errors: list[BaseException] = []

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()

        def is_done() -> bool:
            for gateway in self.gateways:
                gateway.settle()
            return not thread.is_alive()

        self.until(is_done, timeout_s)
        if errors:
            raise errors[0]


@pytest.fixture
def leaders() -> Iterator[Leaders]:
    leaders = Leaders()
    yield leaders
    leaders.close()


@pytest.mark.parametrize("in_order", [False, True], ids=["killed", "stopped"])
def test_a_publisher_with_confirms_goes_on(leaders: Leaders, *, in_order: bool) -> None:
    def work() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "orders", b"1")
        leaders.loop.reactor.callFromThread(leaders.lose, in_order=in_order)
        leaders.loop.reactor.callFromThread(leaders.loop.reactor.callLater, 1.0, leaders.elect)
        for number in range(2, 50):
            channel.basic_publish("", "orders", b"%d" % number)
        channel.queue_declare("more", durable=True)
        connection.close()

    leaders.run(work)
    before, after = leaders.brokers[0].bodies(), leaders.brokers[1].bodies()
    assert sorted({*before, *after}, key=int) == [b"%d" % number for number in range(1, 50)]
    assert after == sorted(after, key=int)
    assert after
    assert (leaders.counts.resumed, leaders.counts.not_resumed) == (1, 0)
    assert "more" in leaders.gateways[1].broker.vhost("/").queue_by_name


@pytest.mark.parametrize("in_order", [False, True], ids=["killed", "stopped"])
def test_a_consumer_goes_on_with_rising_tags(leaders: Leaders, *, in_order: bool) -> None:
    tags: list[int] = []
    bodies: list[bytes] = []

    def consume() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        channel.basic_qos(prefetch_count=3)
        own = channel.queue_declare("", exclusive=True).method.queue
        channel.exchange_declare("topics", "topic", durable=False)
        channel.queue_bind(own, "topics", "a.#")

        def taken(channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
            tags.append(method.delivery_tag)
            bodies.append(body)
            if body not in (b"2", b"3"):
                channel.basic_ack(method.delivery_tag)
            if body == b"last":
                channel.stop_consuming()

        channel.basic_consume("orders", taken)
        channel.basic_consume(own, taken)
        channel.basic_publish("", "orders", b"1")
        channel.basic_publish("", "orders", b"2")
        channel.basic_publish("", "orders", b"3")
        while len(bodies) < 3:
            connection.process_data_events(0.1)
        leaders.loop.reactor.callFromThread(leaders.lose, in_order=in_order)
        leaders.loop.reactor.callFromThread(leaders.loop.reactor.callLater, 0.7, leaders.elect)
        connection.process_data_events(2.0)
        channel.basic_ack(3, multiple=True)  # of the former leader: without effect
        channel.basic_publish("", "orders", b"4")
        channel.basic_publish("", own, b"5")
        channel.basic_publish("topics", "a.b", b"6")
        while len(bodies) < 6:
            connection.process_data_events(0.1)
        channel.basic_publish("", "orders", b"last")
        channel.start_consuming()
        connection.close()

    leaders.run(consume)
    assert bodies[:3] == [b"1", b"2", b"3"]
    assert sorted(bodies[3:6]) == [b"4", b"5", b"6"]
    assert tags == sorted(set(tags))


def test_a_client_is_told_when_no_leader_comes(leaders: Leaders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.net.forwarding.passing.HOLD_S", 1.0)

    def work() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        leaders.loop.reactor.callFromThread(leaders.lose)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match=r"320.*no node of the cluster leads"):
            channel.queue_declare("more", durable=True)

    leaders.run(work)
    assert (leaders.counts.resumed, leaders.counts.not_resumed) == (0, 1)


def test_a_publisher_is_blocked_while_no_node_leads(leaders: Leaders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.net.forwarding.passing._TOLD_S", 0.1)
    monkeypatch.setattr("gateway.net.forwarding.passing.HOLD_S", 0.5)  # it waits for no answer, and is held longer
    reasons: list[str] = []

    def work() -> None:
        connection = leaders.connect_pika()
        connection.add_on_connection_blocked_callback(lambda _, frame: reasons.append(frame.method.reason))
        connection.add_on_connection_unblocked_callback(lambda *_: reasons.append("unblocked"))
        channel = connection.channel()
        channel.basic_publish("", "orders", b"1")
        channel.queue_declare("orders", passive=True)
        leaders.loop.reactor.callFromThread(leaders.lose)
        while not reasons:
            connection.process_data_events(0.1)
        channel.basic_publish("", "orders", b"2")
        leaders.loop.reactor.callFromThread(leaders.loop.reactor.callLater, 1.5, leaders.elect)
        while len(reasons) < 2:
            connection.process_data_events(0.1)
        channel.queue_declare("orders", passive=True)
        connection.close()

    leaders.run(work)
    assert reasons == ["no node of the cluster leads", "unblocked"]
    assert leaders.brokers[1].bodies() == [b"2"]


def test_a_request_of_a_client_that_is_held_has_an_end(leaders: Leaders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.net.forwarding.passing.HOLD_S", 0.5)

    def work() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        leaders.loop.reactor.callFromThread(leaders.lose)
        while not leaders.counts.waiting:
            connection.process_data_events(0.1)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match=r"320.*a request was not answered for 0.5"):
            channel.queue_declare("more", durable=True)

    leaders.run(work)


def test_a_client_that_waits_for_nothing_is_held_for_as_long_as_the_settings_say(leaders: Leaders) -> None:
    leaders.follower._idle_hold_s = 0.5

    def work() -> None:
        connection = leaders.connect_pika()
        connection.channel()
        leaders.loop.reactor.callFromThread(leaders.lose)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match=r"320.*no node of the cluster leads in"):
            connection.process_data_events(30)

    leaders.run(work)


def test_a_client_that_a_slow_leader_held_back_is_read_by_the_next_one(leaders: Leaders) -> None:
    def lose_slow_leader() -> None:
        (client,) = leaders.follower.linked
        valve: Any = client.relay._valve  # type: ignore[union-attr]  # it has a relay
        valve.pauseProducing()  # as the transport of a leader that does not read
        leaders.lose()
        leaders.elect()

    def work() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        leaders.loop.reactor.callFromThread(lose_slow_leader)
        while not leaders.counts.resumed:
            connection.process_data_events(0.1)
        channel.queue_declare("more", durable=True)
        connection.close()

    leaders.run(work)
    assert "more" in leaders.gateways[1].broker.vhost("/").queue_by_name


def test_a_follower_that_is_cut_off_leaves_the_leader_and_goes_on_with_the_same_one(leaders: Leaders) -> None:
    address, epoch = leaders.addresses[0], leaders.epoch
    bound = leaders.bound[address[1]]

    def cut() -> None:
        leaders.address = None
        bound.stopListening()  # present connections stay: nothing says that the leader is gone

    def heal() -> None:
        leaders.address = address
        leaders.loop.reactor.listenTCP(address[1], bound.factory, 1024, address[0])

    def work() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "orders", b"1")
        leaders.loop.reactor.callFromThread(cut)
        while not leaders.counts.waiting:
            connection.process_data_events(0.1)
        leaders.loop.reactor.callFromThread(heal)
        channel.basic_publish("", "orders", b"2")
        connection.close()

    leaders.run(work)
    assert leaders.epoch == epoch
    assert leaders.brokers[0].bodies() == [b"1", b"2"]
    assert (leaders.counts.resumed, leaders.counts.not_resumed) == (1, 0)


def test_a_follower_without_the_engine_stays_with_a_leader_that_it_reaches(leaders: Leaders) -> None:
    def forget() -> None:
        leaders.address = None

    def work() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        channel.confirm_delivery()
        leaders.loop.reactor.callFromThread(forget)
        for _ in range(10):
            connection.process_data_events(0.1)
            channel.basic_publish("", "orders", b"1")
        connection.close()

    leaders.run(work)
    assert (leaders.counts.resumed, leaders.counts.waiting, leaders.counts.expired) == (0, 0, 0)


def test_a_leader_that_lives_and_closes_a_connection_has_closed_it(leaders: Leaders) -> None:
    def work() -> None:
        connection = leaders.connect_pika()
        channel = connection.channel()
        leaders.loop.reactor.callFromThread(leaders.brokers[0].end)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            channel.queue_declare("more", durable=True)

    leaders.run(work)
    assert leaders.counts.resumed == 0
