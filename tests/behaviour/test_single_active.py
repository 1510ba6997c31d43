"""Single active consumers and their succession (R44, R93-R97)."""

import pytest
from pamqp import commands

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing import Recipient
from tests.behaviour.scenario import AmqpClient, Scenario
from tests.protocols.amqp.frames import asked

SINGLE_ACTIVE = {"x-single-active-consumer": True}


def consume(scenario: Scenario, *priorities: int, prefetch: int = 0) -> list[Recipient]:
    recipients = []
    for priority in priorities:
        recipient = Recipient()
        recipient.consume(scenario.vhost.queue("q"), priority=priority, prefetch=prefetch)
        recipients.append(recipient)
    return recipients


def test_r93_the_first_consumer_gets_all_messages_until_it_leaves(scenario: Scenario) -> None:
    scenario.queue("q", SINGLE_ACTIVE)
    first, second, third = consume(scenario, 0, 0, 0)
    scenario.publish(b"1", b"2")
    first.settle(0, up_to=True)
    first.leave()
    scenario.publish(b"3")
    second.settle(0, up_to=True)
    second.leave()
    scenario.publish(b"4")
    assert (first.bodies, second.bodies, third.bodies) == ([b"1", b"2"], [b"3"], [b"4"])


def test_r93_the_other_consumers_wait_while_the_active_one_is_busy(scenario: Scenario) -> None:
    scenario.queue("q", SINGLE_ACTIVE)
    first, second = consume(scenario, 0, 0, prefetch=1)
    scenario.publish(b"1", b"2")
    assert (first.bodies, second.bodies) == ([b"1"], [])
    first.settle(1)
    assert (first.bodies, second.bodies) == ([b"1", b"2"], [])


def test_r93_failover_goes_by_priority_and_then_by_age(scenario: Scenario) -> None:
    scenario.queue("q", SINGLE_ACTIVE)
    active, low, high, equal = consume(scenario, 5, 1, 9, 9)
    scenario.publish(b"1")
    assert active.bodies == [b"1"], "a higher priority does not take over"
    active.leave()
    assert high.bodies == [b"1"]
    high.leave()
    assert equal.bodies == [b"1"]
    equal.leave()
    assert low.bodies == [b"1"]


QUORUM_ACTIVE = {**SINGLE_ACTIVE, "x-queue-type": "quorum"}


@pytest.mark.parametrize("prefetch", [0, 10], ids=["unlimited", "limited"])
def test_r93_in_a_quorum_queue_a_higher_priority_takes_over_once_all_is_settled(
    scenario: Scenario, prefetch: int
) -> None:
    queue = scenario.queue("q", QUORUM_ACTIVE)
    (low,) = consume(scenario, 0, prefetch=prefetch)
    scenario.publish(b"1", b"2")
    high, highest = consume(scenario, 5, 9, prefetch=prefetch)
    scenario.publish(b"3")
    low.settle(1)
    assert (low.bodies, high.bodies, highest.bodies) == ([b"1", b"2"], [], [])
    assert [consumer.subscriber for consumer in queue.consumers if queue.consumers.is_active(consumer)] == [low]
    low.settle(2)
    assert (low.bodies, high.bodies, highest.bodies) == ([b"1", b"2"], [], [b"3"])
    assert [consumer.subscriber for consumer in queue.consumers if queue.consumers.is_active(consumer)] == [highest]


def test_r93_in_a_quorum_queue_requeued_messages_go_to_the_successor(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM_ACTIVE)
    (low,) = consume(scenario, 0)
    scenario.publish(b"1", b"2")
    (high,) = consume(scenario, 1)
    low.settle(0, DeliveryOutcome.REQUEUED, up_to=True)
    assert (low.bodies, high.bodies) == ([b"1", b"2"], [b"1", b"2"])


def test_r93_in_a_quorum_queue_an_idle_consumer_is_succeeded_at_once(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM_ACTIVE)
    low, high = consume(scenario, 0, 1)
    scenario.publish(b"1")
    assert (low.bodies, high.bodies) == ([], [b"1"])


def test_r93_in_a_quorum_queue_an_equal_priority_does_not_take_over(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM_ACTIVE)
    first, equal = consume(scenario, 3, 3)
    scenario.publish(b"1")
    assert (first.bodies, equal.bodies) == ([b"1"], [])


def test_r93_in_a_quorum_queue_the_active_consumer_continues_when_its_successor_leaves_first(
    scenario: Scenario,
) -> None:
    scenario.queue("q", QUORUM_ACTIVE)
    (low,) = consume(scenario, 0)
    scenario.publish(b"1")
    (high,) = consume(scenario, 1)
    scenario.publish(b"2")
    assert low.bodies == [b"1"]
    high.leave()
    assert low.bodies == [b"1", b"2"]


def test_r93_in_a_quorum_queue_the_successor_replaces_a_consumer_that_leaves(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM_ACTIVE)
    (low,) = consume(scenario, 0)
    scenario.publish(b"1")
    middle, high = consume(scenario, 1, 2)
    low.leave()
    assert (middle.bodies, high.bodies) == ([], [b"1"])


def test_r93_a_waiting_consumer_may_leave(scenario: Scenario) -> None:
    scenario.queue("q", SINGLE_ACTIVE)
    first, second = consume(scenario, 0, 0)
    second.leave()
    scenario.publish(b"1")
    assert first.bodies == [b"1"]


def test_r94_a_policy_cannot_enable_a_single_active_consumer(scenario: Scenario) -> None:
    scenario.queue("q")
    with pytest.raises(PreconditionFailed, match="not recognised policy settings"):
        scenario.policy({"single-active-consumer": True})
    first, second = consume(scenario, 0, 0)
    scenario.publish(b"1", b"2")
    assert (first.bodies, second.bodies) == ([b"1"], [b"2"])


def test_r44_the_argument_is_a_boolean(scenario: Scenario) -> None:
    with pytest.raises(PreconditionFailed, match="invalid arg 'x-single-active-consumer'"):
        scenario.queue("q", {"x-single-active-consumer": 1})


def test_r96_unacknowledged_messages_go_to_the_next_consumer_first(scenario: Scenario) -> None:
    scenario.queue("q", SINGLE_ACTIVE)
    first, second = consume(scenario, 0, 0, prefetch=3)
    scenario.publish(b"1", b"2", b"3", b"4", b"5")
    first.settle(1)
    first.leave()
    assert second.bodies == [b"2", b"3", b"4"]
    assert [received.redelivered for received in second.received] == [True, True, True]
    second.settle(0, up_to=True)
    assert second.bodies == [b"2", b"3", b"4", b"5"]


def test_r96_order_is_kept_when_a_connection_is_lost(scenario: Scenario) -> None:
    scenario.queue("q", SINGLE_ACTIVE)
    first, second = AmqpClient(scenario.gateway), AmqpClient(scenario.gateway)
    for client in (first, second):
        client.consume("q", prefetch=2)
    scenario.publish(b"1", b"2", b"3", b"4")
    assert [received.body for received in first.received()] == [b"1", b"2"]
    first.leave()
    scenario.gateway.settle()
    taken = list(second.received())
    for received in taken:
        second.settle(received, DeliveryOutcome.ACCEPTED)
    assert [received.body for received in [*taken, *second.received()]] == [b"1", b"2", b"3", b"4"]


def test_r93_a_cancelled_consumer_is_replaced_at_once_and_keeps_its_deliveries(scenario: Scenario) -> None:
    queue = scenario.queue("q", SINGLE_ACTIVE)
    first, second = AmqpClient(scenario.gateway), AmqpClient(scenario.gateway)
    for client in (first, second):
        client.consume("q", prefetch=1)
    scenario.publish(b"1", b"2")
    (held,) = first.received()
    first.peer.send(asked(commands.Basic.Cancel, consumer_tag=next(iter(queue.consumers)).tag), channel=2)
    first.received()
    assert [received.body for received in second.received()] == [b"2"]
    first.settle(held, DeliveryOutcome.REQUEUED)
    assert scenario.ready() == 1


@pytest.mark.parametrize("queue", ["q"])
def test_r95_an_exclusive_consumer_is_refused(scenario: Scenario, queue: str) -> None:
    scenario.queue(queue, SINGLE_ACTIVE)
    client = AmqpClient(scenario.gateway)
    client.peer.send(asked(commands.Basic.Consume, queue=queue, exclusive=True), channel=2)
    (answer,) = client.peer.receive_frames()
    assert isinstance(answer.method, commands.Channel.Close)
    assert (answer.method.reply_code, answer.method.reply_text) == (
        403,
        "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use",
    )


def test_r95_an_exclusive_queue_may_have_a_single_active_consumer(scenario: Scenario) -> None:
    queue = scenario.vhost.declare_queue("mine", owner=object(), arguments=SINGLE_ACTIVE)
    recipient = Recipient()
    recipient.consume(queue)
    scenario.publish(b"1", to="mine")
    assert recipient.bodies == [b"1"]


def test_listings_show_the_active_consumer(scenario: Scenario) -> None:
    queue = scenario.queue("q", SINGLE_ACTIVE)
    consume(scenario, 0, 0)
    assert [queue.consumers.is_active(consumer) for consumer in queue.consumers] == [True, False]
