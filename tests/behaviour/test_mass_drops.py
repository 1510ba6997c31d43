"""Large numbers of dropped messages and simultaneous timers are handled in slices."""

from collections.abc import Callable

import pytest

from gateway.kernel.messages.message import Value
from gateway.testing import Recipient
from tests.behaviour.scenario import AmqpClient, Scenario
from tests.clocks import TurnClock
from tests.scenarios.all_protocols_broker import AllProtocolsBroker

COUNT = 2000
MOST_A_TURN = 50
TO_DEAD: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


@pytest.fixture
def ticking() -> Scenario:
    """A scenario whose clock advances with each reading."""
    scenario = Scenario(AmqpClient)
    scenario.clock = TurnClock()
    scenario.gateway = AllProtocolsBroker(clock=scenario.clock)
    scenario.client = AmqpClient(scenario.gateway)
    return scenario


def drops_per_turn(scenario: Scenario, count: Callable[[], int], seconds: float = 0) -> list[int]:
    """Run turns until nothing changes any more; return by how much ``count`` fell in each."""
    assert isinstance(scenario.clock, TurnClock)
    drops = []
    before = count()
    has_more = scenario.clock.turn(seconds)
    while has_more or before != count():
        scenario.gateway.settle()
        drops.append(before - count())
        before = count()
        has_more = scenario.clock.turn()
    return drops


def fill(scenario: Scenario, arguments: dict[str, Value], count: int = COUNT) -> None:
    scenario.queue("dead")
    scenario.queue("q", arguments)
    scenario.publish(*[b"m"] * count)


def test_a_limit_that_is_lowered_drops_in_slices_and_the_queue_does_not_grow_meanwhile(ticking: Scenario) -> None:
    fill(ticking, TO_DEAD)
    ticking.policy({"max-length": 10}, pattern="^q$", apply_to="queues")
    left = ticking.ready()
    assert left > COUNT - MOST_A_TURN
    ticking.publish(b"n")
    assert ticking.ready() < left
    drops = drops_per_turn(ticking, ticking.ready)
    assert max(drops) <= MOST_A_TURN
    assert (ticking.ready(), ticking.ready("dead")) == (10, COUNT + 1 - 10)


def test_messages_that_expire_together_are_dropped_in_slices(ticking: Scenario) -> None:
    fill(ticking, {**TO_DEAD, "x-message-ttl": 1000})
    drops = drops_per_turn(ticking, ticking.ready, 2)
    assert max(drops) <= MOST_A_TURN
    assert (ticking.ready(), ticking.ready("dead")) == (0, COUNT)


def test_messages_that_expire_anywhere_together_are_dropped_in_slices(ticking: Scenario) -> None:
    ticking.queue("dead")
    ticking.queue("q", {**TO_DEAD, "x-expire-mode": "anywhere"})
    ticking.publish(*[b"m"] * COUNT, expiration="1000")
    drops = drops_per_turn(ticking, ticking.ready, 2)
    assert max(drops) <= 5 * MOST_A_TURN
    assert (ticking.ready(), ticking.ready("dead")) == (0, COUNT)


def test_messages_of_many_queues_that_expire_together_are_dropped_in_slices(ticking: Scenario) -> None:
    queues = [ticking.queue(f"q{number}", {"x-message-ttl": 1000}) for number in range(400)]
    for queue in queues:
        ticking.publish(b"m", b"n", to=queue.name)
    drops = drops_per_turn(ticking, lambda: sum(map(len, queues)), 2)
    assert max(drops) <= MOST_A_TURN
    assert sum(map(len, queues)) == 0


def test_queues_that_expire_together_are_deleted_in_slices(ticking: Scenario) -> None:
    for number in range(400):
        ticking.queue(f"q{number}", {"x-expires": 1000})
    drops = drops_per_turn(ticking, lambda: len(ticking.vhost.queue_by_name), 2)
    assert max(drops) <= MOST_A_TURN
    assert not ticking.vhost.queue_by_name


def test_messages_due_together_in_many_queues_are_released_in_slices(ticking: Scenario) -> None:
    queues = [ticking.queue(f"q{number}", {"x-delayed-delivery": True}) for number in range(100)]
    for queue in queues:
        ticking.publish(*[b"m"] * 5, to=queue.name, headers={"x-delay": 1000})
    drops = drops_per_turn(ticking, lambda: -sum(map(len, queues)), 2)
    assert max(drops) <= MOST_A_TURN
    assert sum(map(len, queues)) == 500


def test_a_new_consumer_skips_many_expired_messages(ticking: Scenario) -> None:
    fill(ticking, {"x-message-ttl": 1000})
    assert isinstance(ticking.clock, TurnClock)
    ticking.clock._now_s += 2  # their timer is about to expire
    ticking.publish(b"alive")
    recipient = Recipient()
    recipient.consume(ticking.vhost.queue("q"))
    ticking.vhost.queue("q").dispatch()
    assert ticking.ready() > COUNT - 1100
    drops_per_turn(ticking, ticking.ready)
    assert recipient.bodies == [b"alive"]
