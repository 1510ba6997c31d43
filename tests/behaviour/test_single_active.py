"""One consumer at a time, and who takes its place (R44, R93-R97)."""

import pytest
from pamqp import commands

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.queueing.queue import DeliveryOutcome
from gateway.testing import Recipient
from tests.behaviour.edges import AmqpEdge, Stage
from tests.protocols.amqp.frames import asked

SINGLE_ACTIVE = {"x-single-active-consumer": True}


def consume(stage: Stage, *priorities: int, prefetch: int = 0) -> list[Recipient]:
    recipients = []
    for priority in priorities:
        recipient = Recipient()
        recipient.consume(stage.vhost.queue("q"), priority=priority, prefetch=prefetch)
        recipients.append(recipient)
    return recipients


def test_r93_the_first_consumer_gets_all_messages_until_it_leaves(stage: Stage) -> None:
    stage.queue("q", SINGLE_ACTIVE)
    first, second, third = consume(stage, 0, 0, 0)
    stage.publish(b"1", b"2")
    first.settle(0, up_to=True)
    first.leave()
    stage.publish(b"3")
    second.settle(0, up_to=True)
    second.leave()
    stage.publish(b"4")
    assert (first.bodies, second.bodies, third.bodies) == ([b"1", b"2"], [b"3"], [b"4"])


def test_r93_the_other_consumers_wait_while_the_active_one_is_busy(stage: Stage) -> None:
    stage.queue("q", SINGLE_ACTIVE)
    first, second = consume(stage, 0, 0, prefetch=1)
    stage.publish(b"1", b"2")
    assert (first.bodies, second.bodies) == ([b"1"], [])
    first.settle(1)
    assert (first.bodies, second.bodies) == ([b"1", b"2"], [])


def test_r93_failover_goes_by_priority_and_then_by_age(stage: Stage) -> None:
    stage.queue("q", SINGLE_ACTIVE)
    active, low, high, equal = consume(stage, 5, 1, 9, 9)
    stage.publish(b"1")
    assert active.bodies == [b"1"], "one of a higher priority does not take over"
    active.leave()
    assert high.bodies == [b"1"]
    high.leave()
    assert equal.bodies == [b"1"]
    equal.leave()
    assert low.bodies == [b"1"]


QUORUM_ACTIVE = {**SINGLE_ACTIVE, "x-queue-type": "quorum"}


@pytest.mark.parametrize("prefetch", [0, 10], ids=["unlimited", "limited"])
def test_r93_in_a_quorum_queue_a_higher_priority_takes_over_once_all_is_settled(stage: Stage, prefetch: int) -> None:
    queue = stage.queue("q", QUORUM_ACTIVE)
    (low,) = consume(stage, 0, prefetch=prefetch)
    stage.publish(b"1", b"2")
    high, highest = consume(stage, 5, 9, prefetch=prefetch)
    stage.publish(b"3")
    low.settle(1)
    assert (low.bodies, high.bodies, highest.bodies) == ([b"1", b"2"], [], [])
    assert [consumer.subscriber for consumer in queue.consumers if queue.consumers.is_active(consumer)] == [low]
    low.settle(2)
    assert (low.bodies, high.bodies, highest.bodies) == ([b"1", b"2"], [], [b"3"])
    assert [consumer.subscriber for consumer in queue.consumers if queue.consumers.is_active(consumer)] == [highest]


def test_r93_in_a_quorum_queue_requeued_messages_go_to_the_successor(stage: Stage) -> None:
    stage.queue("q", QUORUM_ACTIVE)
    (low,) = consume(stage, 0)
    stage.publish(b"1", b"2")
    (high,) = consume(stage, 1)
    low.settle(0, DeliveryOutcome.REQUEUED, up_to=True)
    assert (low.bodies, high.bodies) == ([b"1", b"2"], [b"1", b"2"])


def test_r93_in_a_quorum_queue_an_idle_consumer_is_succeeded_at_once(stage: Stage) -> None:
    stage.queue("q", QUORUM_ACTIVE)
    low, high = consume(stage, 0, 1)
    stage.publish(b"1")
    assert (low.bodies, high.bodies) == ([], [b"1"])


def test_r93_in_a_quorum_queue_an_equal_priority_does_not_take_over(stage: Stage) -> None:
    stage.queue("q", QUORUM_ACTIVE)
    first, equal = consume(stage, 3, 3)
    stage.publish(b"1")
    assert (first.bodies, equal.bodies) == ([b"1"], [])


def test_r93_in_a_quorum_queue_the_active_consumer_continues_when_its_successor_leaves_first(stage: Stage) -> None:
    stage.queue("q", QUORUM_ACTIVE)
    (low,) = consume(stage, 0)
    stage.publish(b"1")
    (high,) = consume(stage, 1)
    stage.publish(b"2")
    assert low.bodies == [b"1"]
    high.leave()
    assert low.bodies == [b"1", b"2"]


def test_r93_in_a_quorum_queue_the_successor_replaces_a_consumer_that_leaves(stage: Stage) -> None:
    stage.queue("q", QUORUM_ACTIVE)
    (low,) = consume(stage, 0)
    stage.publish(b"1")
    middle, high = consume(stage, 1, 2)
    low.leave()
    assert (middle.bodies, high.bodies) == ([], [b"1"])


def test_r93_a_waiting_consumer_may_leave(stage: Stage) -> None:
    stage.queue("q", SINGLE_ACTIVE)
    first, second = consume(stage, 0, 0)
    second.leave()
    stage.publish(b"1")
    assert first.bodies == [b"1"]


def test_r94_a_policy_cannot_enable_a_single_active_consumer(stage: Stage) -> None:
    stage.queue("q")
    with pytest.raises(PreconditionFailed, match="not recognised policy settings"):
        stage.policy({"single-active-consumer": True})
    first, second = consume(stage, 0, 0)
    stage.publish(b"1", b"2")
    assert (first.bodies, second.bodies) == ([b"1"], [b"2"])


def test_r44_the_argument_is_a_boolean(stage: Stage) -> None:
    with pytest.raises(PreconditionFailed, match="invalid arg 'x-single-active-consumer'"):
        stage.queue("q", {"x-single-active-consumer": 1})


def test_r96_unacknowledged_messages_go_to_the_next_consumer_first(stage: Stage) -> None:
    stage.queue("q", SINGLE_ACTIVE)
    first, second = consume(stage, 0, 0, prefetch=3)
    stage.publish(b"1", b"2", b"3", b"4", b"5")
    first.settle(1)
    first.leave()
    assert second.bodies == [b"2", b"3", b"4"]
    assert [received.redelivered for received in second.received] == [True, True, True]
    second.settle(0, up_to=True)
    assert second.bodies == [b"2", b"3", b"4", b"5"]


def test_r96_order_is_kept_when_a_connection_is_lost(stage: Stage) -> None:
    stage.queue("q", SINGLE_ACTIVE)
    first, second = AmqpEdge(stage.gateway), AmqpEdge(stage.gateway)
    for client in (first, second):
        client.consume("q", prefetch=2)
    stage.publish(b"1", b"2", b"3", b"4")
    assert [received.body for received in first.received()] == [b"1", b"2"]
    first.leave()
    stage.gateway.settle()
    taken = list(second.received())
    for received in taken:
        second.settle(received, DeliveryOutcome.ACCEPTED)
    assert [received.body for received in [*taken, *second.received()]] == [b"1", b"2", b"3", b"4"]


def test_r93_a_cancelled_consumer_is_replaced_at_once_and_keeps_its_deliveries(stage: Stage) -> None:
    queue = stage.queue("q", SINGLE_ACTIVE)
    first, second = AmqpEdge(stage.gateway), AmqpEdge(stage.gateway)
    for client in (first, second):
        client.consume("q", prefetch=1)
    stage.publish(b"1", b"2")
    (held,) = first.received()
    first.peer.send(asked(commands.Basic.Cancel, consumer_tag=next(iter(queue.consumers)).tag), channel=2)
    first.received()
    assert [received.body for received in second.received()] == [b"2"]
    first.settle(held, DeliveryOutcome.REQUEUED)
    assert stage.ready() == 1


@pytest.mark.parametrize("queue", ["q"])
def test_r95_an_exclusive_consumer_is_refused(stage: Stage, queue: str) -> None:
    stage.queue(queue, SINGLE_ACTIVE)
    client = AmqpEdge(stage.gateway)
    client.peer.send(asked(commands.Basic.Consume, queue=queue, exclusive=True), channel=2)
    (answer,) = client.peer.listen()
    assert isinstance(answer.method, commands.Channel.Close)
    assert (answer.method.reply_code, answer.method.reply_text) == (
        403,
        "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use",
    )


def test_r95_an_exclusive_queue_may_have_a_single_active_consumer(stage: Stage) -> None:
    queue = stage.vhost.declare_queue("mine", owner=object(), arguments=SINGLE_ACTIVE)
    recipient = Recipient()
    recipient.consume(queue)
    stage.publish(b"1", to="mine")
    assert recipient.bodies == [b"1"]


def test_listings_show_the_active_consumer(stage: Stage) -> None:
    queue = stage.queue("q", SINGLE_ACTIVE)
    consume(stage, 0, 0)
    assert [queue.consumers.is_active(consumer) for consumer in queue.consumers] == [True, False]
