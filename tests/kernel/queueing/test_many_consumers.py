"""A queue with very many consumers: their order is that of few, and the end of their client takes several turns."""

from random import Random

import pytest
from pamqp import commands

from gateway.kernel.queueing.consumer import Consumer, Credit, Outlet
from gateway.kernel.queueing.leaving import MOST_CANCELLED, DepartedSubscriber
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.scheduler import Consumers
from gateway.kernel.queueing.single_active import QuorumSingleActive, SingleActive
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import Recipient
from tests.clocks import TurnClock
from tests.protocols.amqp.dialogue import Gateway
from tests.protocols.amqp.frames import publish
from tests.protocols.stomp.dialogue import Gateway as StompGateway

MANY = 3 * MOST_CANCELLED


@pytest.fixture
def queue(vhost: VirtualHost) -> Queue:
    queue = vhost.declare_queue("q")
    assert isinstance(queue, Queue)
    return queue


def new(queue: Queue, priority: int) -> Consumer:
    subscriber, outlet = Recipient(), Outlet()
    return Consumer(queue, "", subscriber, outlet, needs_settling=True, priority=priority, credit=Credit(0))


class PlainOrder:
    """The order of consumers in plain lists, one for each priority, whose first one is next."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Consumer]] = {}

    def add(self, consumer: Consumer) -> None:
        self._rows.setdefault(consumer.priority, []).append(consumer)

    def remove(self, consumer: Consumer) -> None:
        if not consumer.is_waiting:
            self._rows[consumer.priority].remove(consumer)

    def next(self) -> Consumer | None:
        for _, row in sorted(self._rows.items(), reverse=True):
            while row:
                consumer = row.pop(0)
                if consumer.outlet.is_open:
                    row.append(consumer)
                    return consumer
        return None


@pytest.mark.parametrize("priorities", [1, 3, 100])
def test_consumers_that_come_wait_and_leave_take_turns_in_order(queue: Queue, priorities: int) -> None:
    random, scheduler, plain = Random(priorities), Consumers(), PlainOrder()
    present: list[Consumer] = []
    for number in range(6000):
        kind = random.random()
        if kind < (0.6 if number % 2000 < 1000 else 0.2) or not present:
            consumer = new(queue, random.randrange(priorities))
            present.append(consumer)
            scheduler.add(consumer)
            plain.add(consumer)
        elif kind < 0.75:
            consumer = present.pop(random.randrange(len(present)))
            plain.remove(consumer)
            scheduler.remove(consumer)
        elif kind < 0.85:
            consumer = random.choice(present)
            consumer.outlet.is_open = not consumer.outlet.is_open
            if consumer.outlet.is_open and consumer.is_waiting:
                plain.add(consumer)
                scheduler.resume(consumer)
        else:
            assert scheduler.next() is plain.next()
    for consumer in present:
        plain.remove(consumer)
        scheduler.remove(consumer)
    assert scheduler.next() is None
    assert len(scheduler) == 0


@pytest.mark.parametrize("scheduler", [SingleActive(), QuorumSingleActive()])
def test_the_successor_of_a_single_active_consumer_is_the_oldest_of_the_best(
    queue: Queue, scheduler: SingleActive
) -> None:
    random = Random(1)
    consumers = [new(queue, random.randrange(5)) for _ in range(500)]
    for consumer in consumers[:300]:
        scheduler.add(consumer)
    for consumer in consumers[50:250]:
        scheduler.remove(consumer)
    for consumer in consumers[300:]:
        scheduler.add(consumer)
    left = consumers[:50] + consumers[250:]
    while left:
        active = scheduler.next()
        assert active is not None
        left.remove(active)
        scheduler.remove(active)
        assert scheduler.next() is max(left, key=lambda each: each.priority, default=None)


# The end of a client


def test_the_consumers_of_a_lost_connection_are_cancelled_in_several_turns() -> None:
    clock = TurnClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    queue = gateway.vhost.declare_queue("q")
    client, other = gateway.connect(), gateway.connect()
    client.send(*[commands.Basic.Consume(queue="q") for _ in range(MANY)])
    client.send(*[publish("", "q", b"%d" % number) for number in range(5)])
    gateway.settle()
    clock.is_ticking = True
    client.lose()
    assert queue.consumer_count == MANY
    other.send(commands.Basic.Consume(queue="q", no_ack=True), publish("", "q", b"5"))
    counts = []
    while clock.turn():
        gateway.settle()
        counts.append(queue.consumer_count)
    assert counts[0] > MANY // 2
    assert queue.consumer_count == 1
    assert len([frame for frame in other.receive_frames() if frame.body]) == 6


def test_a_closed_channel_with_many_consumers_gets_no_more_messages() -> None:
    clock = TurnClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    gateway.vhost.declare_queue("q")
    client = gateway.connect()
    client.send(*[commands.Basic.Consume(queue="q") for _ in range(MANY)])
    client.receive()
    clock.is_ticking = True
    assert client.request(commands.Channel.Close(200, "", 0, 0)) == ["Channel.CloseOk()"]
    gateway.connect().send(publish("", "q"))
    assert client.receive() == []
    while clock.turn():
        gateway.settle()
    assert gateway.ready("q") == 1
    assert client.receive() == []


def test_an_exclusive_queue_whose_consumers_leave_in_several_turns_is_deleted() -> None:
    clock = TurnClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    client = gateway.connect()
    client.send(commands.Queue.Declare(queue="mine", exclusive=True))
    client.send(*[commands.Basic.Consume(queue="mine") for _ in range(MANY)])
    client.receive()
    clock.is_ticking = True
    client.lose()
    while clock.turn():
        gateway.settle()
    assert "mine" not in gateway.vhost.queue_by_name


def test_the_subscriptions_of_a_lost_stomp_connection_end_in_several_turns() -> None:
    clock = TurnClock(is_ticking=False)
    gateway = StompGateway(clock=clock)
    client = gateway.client()
    for number in range(MANY):
        client.command("SUBSCRIBE", id=str(number), destination="/queue/q", ack="client")
    client.publish("/queue/q", b"m")
    queue = gateway.vhost.queue("q")
    clock.is_ticking = True
    client.lose()
    assert queue.consumer_count == MANY
    while clock.turn():
        gateway.settle()
    assert queue.consumer_count == 0
    assert len(queue) == 1


def test_what_many_stomp_subscriptions_hold_comes_back_in_later_turns() -> None:
    clock = TurnClock(is_ticking=False)
    gateway = StompGateway(clock=clock)
    client = gateway.client()
    for number in range(MANY):
        client.command("SUBSCRIBE", id=str(number), destination=f"/queue/{number}", ack="client")
        client.publish(f"/queue/{number}", b"m")
    client.receive()
    queues = list(gateway.vhost.queue_by_name.values())
    clock.is_ticking = True
    client.lose()
    counts = [sum(map(len, queues))]
    while clock.turn():
        gateway.settle()
        counts.append(sum(map(len, queues)))
    assert counts[0] == 0
    assert counts[1] < MANY
    assert counts[-1] == MANY
    assert {len(queue) for queue in queues} == {1}


def test_a_departed_subscriber_ignores_the_end_of_its_queue(queue: Queue) -> None:
    recipient = Recipient()
    departed = DepartedSubscriber(recipient.origin)
    departed.cancelled(recipient.consume(queue))
    assert departed.origin == recipient.origin
