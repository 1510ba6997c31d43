"""Expiry of messages anywhere in the queue (the opposite of R158): ``x-expire-mode=anywhere``."""

import pytest

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.behaviour.scenario import Scenario


def declare_queues(scenario: Scenario, **arguments: Value) -> None:
    scenario.queue("dead")
    others = {name.replace("_", "-"): value for name, value in arguments.items()}
    scenario.queue(
        "q",
        {
            "x-expire-mode": "anywhere",
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
            **others,
        },
    )


def test_a_message_expires_before_earlier_ones(scenario: Scenario) -> None:
    declare_queues(scenario)
    scenario.publish(b"lasting")
    for milliseconds in (300, 100, 200):
        scenario.publish(b"%d" % milliseconds, expiration=str(milliseconds))
    scenario.publish(b"last")
    for _ in range(3):
        scenario.advance(100)
    assert [dead.died for dead in scenario.drain("dead")] == [[("q", "expired", 1)]] * 3
    assert scenario.bodies() == [b"lasting", b"last"]


def test_messages_expire_at_the_head_by_default(scenario: Scenario) -> None:
    scenario.queue("q", {"x-expire-mode": "head"})
    scenario.publish(b"lasting")
    scenario.publish(b"short", expiration="10")
    scenario.advance(100)
    assert scenario.ready() == 2


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["transient", "persistent"])
def test_messages_in_the_middle_of_a_long_queue_expire(scenario: Scenario, delivery_mode: int) -> None:
    declare_queues(scenario)
    for number in range(4000):
        expiration = "1000" if number % 3 == 1 else None
        publish(scenario, number, expiration, delivery_mode)
    scenario.advance(1000)
    scenario.advance(1000)
    assert scenario.ready() == 4000 - 1333
    assert scenario.ready("dead") == 1333
    assert [int(received.body) for received in scenario.drain("q")] == [n for n in range(4000) if n % 3 != 1]


def publish(scenario: Scenario, number: int, expiration: str | None, delivery_mode: int) -> None:
    scenario.publish(b"%d" % number, expiration=expiration, delivery_mode=delivery_mode)


def test_a_restart_keeps_expiry_times(scenario: Scenario) -> None:
    declare_queues(scenario)
    scenario.publish(b"lasting", delivery_mode=2)
    scenario.publish(b"short", delivery_mode=2, expiration="1000")
    scenario.restart()
    scenario.advance(999)
    assert scenario.ready() == 2
    scenario.advance(1)
    assert scenario.bodies() == [b"lasting"]
    assert scenario.bodies("dead") == [b"short"]


def test_an_unacknowledged_message_expires_when_it_is_requeued(scenario: Scenario) -> None:
    declare_queues(scenario)
    scenario.publish(b"held", expiration="100")
    held = scenario.get()
    scenario.advance(200)
    assert scenario.ready("dead") == 0
    scenario.client.settle(held, DeliveryOutcome.REQUEUED)
    scenario.advance(0)
    assert scenario.bodies("dead") == [b"held"]


def test_low_priority_messages_expire_independently_of_higher_ones(scenario: Scenario) -> None:
    """The opposite of R80."""
    declare_queues(scenario, x_max_priority=5, x_message_ttl=1000)
    scenario.publish(b"old", priority=1)
    scenario.advance(500)
    scenario.publish(b"young", priority=5)
    scenario.publish(b"own", priority=5, expiration="100")
    scenario.advance(100)
    assert scenario.bodies("dead") == [b"own"]
    scenario.advance(400)
    assert scenario.bodies("dead") == [b"old"]
    assert scenario.bodies() == [b"young"]


def test_a_policy_shortens_the_time_to_live_of_waiting_messages(scenario: Scenario) -> None:
    declare_queues(scenario, x_max_priority=5)
    scenario.publish(b"high", priority=5)
    scenario.publish(b"low", priority=1, expiration="5000")
    scenario.advance(100)
    scenario.policy({"message-ttl": 50})
    scenario.advance(0)
    assert scenario.ready() == 0


def test_consumed_messages_leave_no_stale_entries(scenario: Scenario) -> None:
    declare_queues(scenario)
    for number in range(3000):
        publish(scenario, number, "3600000", 1)
        scenario.client.settle(scenario.get(), DeliveryOutcome.ACCEPTED)
    scenario.advance(7_200_000)
    assert scenario.ready("dead") == 0
