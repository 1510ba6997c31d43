"""Messages that wait too long leave from the head of their queue (R40, R51-R59, R158)."""

import pytest

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from gateway.testing import FakeClock
from tests.behaviour.edges import Stage

TTLS = [
    #            argument  policy  operator  expiration  lives
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


@pytest.mark.parametrize(("argument", "policy", "operator", "expiration", "lives"), TTLS)
def test_the_shortest_time_to_live_applies(
    stage: Stage, argument: int | None, policy: int | None, operator: int | None, expiration: str | None, lives: int
) -> None:
    stage.queue("q", {} if argument is None else {"x-message-ttl": argument})
    if policy is not None:
        stage.policy({"message-ttl": policy})
    if operator is not None:
        stage.policy({"message-ttl": operator}, is_operator=True)
    stage.publish(b"m", expiration=expiration)
    stage.advance(lives - 1)
    assert stage.ready() == 1
    stage.advance(1)
    assert stage.ready() == 0


def test_r53_an_expired_message_is_never_delivered(stage: Stage) -> None:
    stage.queue("q")
    stage.publish(b"lasting")
    stage.publish(b"passing", expiration="10")
    stage.publish(b"last")
    stage.advance(10)
    assert stage.bodies() == [b"lasting", b"last"]


def test_r54_the_head_expires_without_consumers(stage: Stage) -> None:
    stage.queue("q", {"x-message-ttl": 50})
    stage.publish(b"a")
    stage.advance(20)
    stage.publish(b"b")
    stage.advance(30)
    assert stage.ready() == 1
    stage.advance(20)
    assert stage.ready() == 0


def test_r54_r158_a_message_waits_behind_one_that_lives_longer(stage: Stage) -> None:
    stage.queue("q")
    stage.publish(b"long", expiration="1000")
    stage.publish(b"short", expiration="10")
    stage.advance(500)
    assert stage.ready() == 2
    stage.advance(500)
    assert stage.ready() == 0


def test_r54_a_message_that_becomes_the_head_expires_on_time(stage: Stage) -> None:
    stage.queue("q")
    stage.publish(b"long", expiration="60000")
    stage.publish(b"short", expiration="1000")
    stage.publish(b"lasting")
    held = stage.get()
    stage.advance(1000)
    assert (held.body, stage.ready()) == (b"long", 1)


def test_r54_an_expired_message_is_removed_when_it_becomes_the_head(stage: Stage) -> None:
    stage.queue("q")
    stage.publish(b"lasting")
    stage.publish(b"short", expiration="10")
    stage.advance(20)
    assert stage.ready() == 2
    stage.get()
    stage.advance(0)
    assert stage.ready() == 0


def test_r55_expired_messages_behind_the_head_count(stage: Stage) -> None:
    queue = stage.queue("q")
    stage.publish(b"lasting")
    stage.publish(b"short", expiration="10")
    stage.advance(20)
    assert (len(queue), queue.ready.bytes) == (2, len(b"lasting") + len(b"short"))


def test_r56_a_policy_applies_to_waiting_messages(stage: Stage) -> None:
    stage.queue("q")
    stage.publish(b"m")
    stage.advance(500)
    record = stage.policy({"message-ttl": 600})
    stage.advance(99)
    assert stage.ready() == 1
    stage.gateway.broker.remove_policy(record)
    stage.advance(1000)
    assert stage.ready() == 1
    stage.policy({"message-ttl": 600})
    stage.advance(0)
    assert stage.ready() == 0


def test_r57_the_time_to_live_continues_while_a_message_is_unacknowledged(stage: Stage) -> None:
    stage.queue("q", {"x-message-ttl": 100})
    stage.publish(b"m")
    held = stage.get()
    stage.advance(60)
    stage.client.settle(held, DeliveryOutcome.REQUEUED)
    assert stage.ready() == 1
    stage.advance(40)
    assert stage.ready() == 0


def test_r57_a_message_requeued_after_its_expiry_is_dropped(stage: Stage) -> None:
    stage.queue("q", {"x-message-ttl": 100})
    stage.publish(b"m")
    held = stage.get()
    stage.advance(200)
    stage.client.settle(held, DeliveryOutcome.REQUEUED)
    assert stage.ready() == 0


@pytest.mark.parametrize(
    ("arguments", "expiration"),
    [pytest.param({"x-message-ttl": 0}, None, id="queue"), pytest.param({}, "0", id="message")],
)
def test_r58_a_message_with_zero_ttl_is_delivered_at_once_or_dropped(
    stage: Stage, arguments: dict[str, Value], expiration: str | None
) -> None:
    stage.queue("q", arguments)
    assert stage.publish(b"missed", expiration=expiration) == [True]
    assert stage.ready() == 0
    stage.client.consume("q")
    stage.publish(b"met", expiration=expiration)
    assert [received.body for received in stage.client.received()] == [b"met"]


def test_r58_an_undelivered_message_with_zero_ttl_is_dead_lettered(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    stage.publish(b"m")
    assert [received.died for received in stage.drain("dead")] == [[("q", "expired", 1)]]


def test_r59_a_message_expires_in_each_queue_independently(stage: Stage) -> None:
    stage.queue("short", {"x-message-ttl": 10})
    stage.queue("long", {"x-message-ttl": 100})
    stage.exchange("x", "fanout", "short", "long")
    stage.publish(b"m", exchange="x")
    stage.advance(10)
    assert (stage.ready("short"), stage.ready("long")) == (0, 1)
    stage.advance(90)
    assert stage.ready("long") == 0


@pytest.mark.parametrize(
    ("arguments", "expiration"),
    [pytest.param({"x-message-ttl": 100}, None, id="queue"), pytest.param({}, "100", id="message")],
)
def test_the_time_to_live_continues_across_a_restart(
    stage: Stage, arguments: dict[str, Value], expiration: str | None
) -> None:
    stage.queue("q", arguments)
    stage.publish(b"m", expiration=expiration, delivery_mode=2)
    stage.advance(60)
    stage.restart()
    assert stage.ready() == 1
    stage.advance(39)
    assert stage.ready() == 1
    stage.advance(1)
    assert stage.ready() == 0


def test_r57_a_directly_delivered_message_expires_after_it_is_requeued(stage: Stage) -> None:
    stage.queue("q")
    stage.client.consume("q", prefetch=1)
    stage.publish(b"m", expiration="100")
    (held,) = stage.client.received()
    stage.client.leave()
    assert (held.body, stage.ready()) == (b"m", 1)
    stage.advance(99)
    assert stage.ready() == 1
    stage.advance(1)
    assert stage.ready() == 0


def test_a_message_dropped_by_one_queue_at_a_start_stays_in_another(stage: Stage) -> None:
    stage.queue("short", {"x-message-ttl": 50})
    stage.queue("q")
    stage.exchange("both", "fanout", "short", "q")
    stage.publish(b"m", exchange="both", expiration="100000", delivery_mode=2)
    stage.gateway.settle()
    stage.clock = FakeClock(stage.clock.wall_ms() + 60)  # so long it is down
    stage.restart()
    stage.advance(0)
    stage.restart()
    assert (stage.ready("short"), stage.bodies("q")) == (0, [b"m"])


def test_messages_that_expired_during_downtime_are_dropped(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", {"x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    stage.publish(b"m", delivery_mode=2)
    stage.clock.advance(0.09)
    stage.restart()
    stage.advance(10)
    assert (stage.ready(), stage.bodies("dead")) == (0, [b"m"])
