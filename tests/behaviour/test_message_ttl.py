"""Expired messages leave the head of their queue (R40, R51-R59, R158)."""

import pytest

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing import FakeClock
from tests.behaviour.scenario import Scenario

TTLS = [
    #            argument  policy  operator  expiration  ttl
    pytest.param(100, None, None, None, 100, id="R40: the argument alone"),
    pytest.param(None, 100, None, None, 100, id="R51: the policy alone"),
    pytest.param(None, None, 100, None, 100, id="R140: the operator policy alone"),
    pytest.param(None, None, None, "100", 100, id="R52: the message alone"),
    pytest.param(100, 200, 300, "400", 100, id="R51: the argument is least"),
    pytest.param(400, 100, 300, "200", 100, id="R51: the policy is least"),
    pytest.param(400, 300, 100, "200", 100, id="R51: the operator policy is least"),
    pytest.param(400, 300, 200, "100", 100, id="R51: the message's own is least"),
    pytest.param(400, None, None, "100", 100, id="R51: argument and message"),
    pytest.param(100, None, None, "400", 100, id="R51: message and argument"),
]


@pytest.mark.parametrize(("argument", "policy", "operator", "expiration", "ttl"), TTLS)
def test_the_shortest_time_to_live_applies(
    scenario: Scenario, argument: int | None, policy: int | None, operator: int | None, expiration: str | None, ttl: int
) -> None:
    scenario.queue("q", {} if argument is None else {"x-message-ttl": argument})
    if policy is not None:
        scenario.policy({"message-ttl": policy})
    if operator is not None:
        scenario.policy({"message-ttl": operator}, is_operator=True)
    scenario.publish(b"m", expiration=expiration)
    scenario.advance(ttl - 1)
    assert scenario.ready() == 1
    scenario.advance(1)
    assert scenario.ready() == 0


def test_r53_an_expired_message_is_never_delivered(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.publish(b"lasting")
    scenario.publish(b"passing", expiration="10")
    scenario.publish(b"last")
    scenario.advance(10)
    assert scenario.bodies() == [b"lasting", b"last"]


def test_r54_the_head_expires_without_consumers(scenario: Scenario) -> None:
    scenario.queue("q", {"x-message-ttl": 50})
    scenario.publish(b"a")
    scenario.advance(20)
    scenario.publish(b"b")
    scenario.advance(30)
    assert scenario.ready() == 1
    scenario.advance(20)
    assert scenario.ready() == 0


def test_r54_r158_a_message_waits_behind_one_that_lives_longer(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.publish(b"long", expiration="1000")
    scenario.publish(b"short", expiration="10")
    scenario.advance(500)
    assert scenario.ready() == 2
    scenario.advance(500)
    assert scenario.ready() == 0


def test_r54_a_message_that_becomes_the_head_expires_on_time(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.publish(b"long", expiration="60000")
    scenario.publish(b"short", expiration="1000")
    scenario.publish(b"lasting")
    held = scenario.get()
    scenario.advance(1000)
    assert (held.body, scenario.ready()) == (b"long", 1)


def test_r54_an_expired_message_is_removed_when_it_becomes_the_head(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.publish(b"lasting")
    scenario.publish(b"short", expiration="10")
    scenario.advance(20)
    assert scenario.ready() == 2
    scenario.get()
    scenario.advance(0)
    assert scenario.ready() == 0


def test_r55_expired_messages_behind_the_head_count(scenario: Scenario) -> None:
    queue = scenario.queue("q")
    scenario.publish(b"lasting")
    scenario.publish(b"short", expiration="10")
    scenario.advance(20)
    assert (len(queue), queue.ready.bytes) == (2, len(b"lasting") + len(b"short"))


def test_r56_a_policy_applies_to_waiting_messages(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.publish(b"m")
    scenario.advance(500)
    record = scenario.policy({"message-ttl": 600})
    scenario.advance(99)
    assert scenario.ready() == 1
    scenario.gateway.broker.remove_policy(record)
    scenario.advance(1000)
    assert scenario.ready() == 1
    scenario.policy({"message-ttl": 600})
    scenario.advance(0)
    assert scenario.ready() == 0


def test_r57_the_time_to_live_continues_while_a_message_is_unacknowledged(scenario: Scenario) -> None:
    scenario.queue("q", {"x-message-ttl": 100})
    scenario.publish(b"m")
    held = scenario.get()
    scenario.advance(60)
    scenario.client.settle(held, DeliveryOutcome.REQUEUED)
    assert scenario.ready() == 1
    scenario.advance(40)
    assert scenario.ready() == 0


def test_r57_a_message_requeued_after_its_expiry_is_dropped(scenario: Scenario) -> None:
    scenario.queue("q", {"x-message-ttl": 100})
    scenario.publish(b"m")
    held = scenario.get()
    scenario.advance(200)
    scenario.client.settle(held, DeliveryOutcome.REQUEUED)
    assert scenario.ready() == 0


@pytest.mark.parametrize(
    ("arguments", "expiration"),
    [pytest.param({"x-message-ttl": 0}, None, id="queue"), pytest.param({}, "0", id="message")],
)
def test_r58_a_message_with_zero_ttl_is_delivered_at_once_or_dropped(
    scenario: Scenario, arguments: dict[str, Value], expiration: str | None
) -> None:
    scenario.queue("q", arguments)
    assert scenario.publish(b"missed", expiration=expiration) == [True]
    assert scenario.ready() == 0
    scenario.client.consume("q")
    scenario.publish(b"met", expiration=expiration)
    assert [received.body for received in scenario.client.received()] == [b"met"]


def test_r58_an_undelivered_message_with_zero_ttl_is_dead_lettered(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    scenario.publish(b"m")
    assert [received.died for received in scenario.drain("dead")] == [[("q", "expired", 1)]]


def test_r59_a_message_expires_in_each_queue_independently(scenario: Scenario) -> None:
    scenario.queue("short", {"x-message-ttl": 10})
    scenario.queue("long", {"x-message-ttl": 100})
    scenario.exchange("x", "fanout", "short", "long")
    scenario.publish(b"m", exchange="x")
    scenario.advance(10)
    assert (scenario.ready("short"), scenario.ready("long")) == (0, 1)
    scenario.advance(90)
    assert scenario.ready("long") == 0


@pytest.mark.parametrize(
    ("arguments", "expiration"),
    [pytest.param({"x-message-ttl": 100}, None, id="queue"), pytest.param({}, "100", id="message")],
)
def test_the_time_to_live_continues_across_a_restart(
    scenario: Scenario, arguments: dict[str, Value], expiration: str | None
) -> None:
    scenario.queue("q", arguments)
    scenario.publish(b"m", expiration=expiration, delivery_mode=2)
    scenario.advance(60)
    scenario.restart()
    assert scenario.ready() == 1
    scenario.advance(39)
    assert scenario.ready() == 1
    scenario.advance(1)
    assert scenario.ready() == 0


def test_r57_a_directly_delivered_message_expires_after_it_is_requeued(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.client.consume("q", prefetch=1)
    scenario.publish(b"m", expiration="100")
    (held,) = scenario.client.received()
    scenario.client.leave()
    assert (held.body, scenario.ready()) == (b"m", 1)
    scenario.advance(99)
    assert scenario.ready() == 1
    scenario.advance(1)
    assert scenario.ready() == 0


def test_a_message_dropped_by_one_queue_at_a_start_stays_in_another(scenario: Scenario) -> None:
    scenario.queue("short", {"x-message-ttl": 50})
    scenario.queue("q")
    scenario.exchange("both", "fanout", "short", "q")
    scenario.publish(b"m", exchange="both", expiration="100000", delivery_mode=2)
    scenario.gateway.settle()
    scenario.clock = FakeClock(scenario.clock.wall_ms() + 60)  # the time it is down
    scenario.restart()
    scenario.advance(0)
    scenario.restart()
    assert (scenario.ready("short"), scenario.bodies("q")) == (0, [b"m"])


def test_messages_that_expired_during_downtime_are_dropped(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", {"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    scenario.publish(b"m", delivery_mode=2)
    scenario.clock.advance(0.09)
    scenario.restart()
    scenario.advance(10)
    assert (scenario.ready(), scenario.bodies("dead")) == (0, [b"m"])
