"""Very many messages that leave at once, and very many timers of one moment: no turn does much of it, all is done."""

from collections.abc import Callable
from heapq import heappop

import pytest

from gateway.kernel.messages.message import Value
from gateway.testing import Recipient
from tests.behaviour.edges import AmqpEdge, Stage
from tests.clocks import TickingClock
from tests.scenarios.all_protocols_broker import AllProtocolsBroker

COUNT = 2000
MOST_A_TURN = 50
TO_DEAD: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


class TurnClock(TickingClock):
    """Makes calls turn by turn, as a reactor does."""

    def turn(self, seconds: float = 0) -> bool:
        """Let time pass, then make the calls that are due by now; return whether there were any."""
        self._now_s += seconds
        due = []
        while self._due and self._due[0][0] <= self._now_s:
            due.append(heappop(self._due)[2])
        for timer in due:
            timer.ring()
        return bool(due)


@pytest.fixture
def slow() -> Stage:
    """A stage on a clock whose time passes while work is done."""
    stage = Stage(AmqpEdge)
    stage.clock = TurnClock()
    stage.gateway = AllProtocolsBroker(clock=stage.clock)
    stage.client = AmqpEdge(stage.gateway)
    return stage


def watched(stage: Stage, count: Callable[[], int], seconds: float = 0) -> list[int]:
    """Let turns pass until nothing happens any more; return how much ``count`` fell in each."""
    assert isinstance(stage.clock, TurnClock)
    fallen = []
    before = count()
    goes_on = stage.clock.turn(seconds)
    while goes_on or before != count():
        stage.gateway.settle()
        fallen.append(before - count())
        before = count()
        goes_on = stage.clock.turn()
    return fallen


def filled(stage: Stage, arguments: dict[str, Value], count: int = COUNT) -> None:
    stage.queue("dead")
    stage.queue("q", arguments)
    stage.publish(*[b"m"] * count)


def test_a_limit_that_is_lowered_drops_in_slices_and_the_queue_does_not_grow_meanwhile(slow: Stage) -> None:
    filled(slow, TO_DEAD)
    slow.policy({"max-length": 10}, pattern="^q$", apply_to="queues")
    left = slow.ready()
    assert left > COUNT - MOST_A_TURN
    slow.publish(b"n")
    assert slow.ready() < left
    fallen = watched(slow, slow.ready)
    assert max(fallen) <= MOST_A_TURN
    assert (slow.ready(), slow.ready("dead")) == (10, COUNT + 1 - 10)


def test_messages_that_expire_together_are_dropped_in_slices(slow: Stage) -> None:
    filled(slow, {**TO_DEAD, "x-message-ttl": 1000})
    fallen = watched(slow, slow.ready, 2)
    assert max(fallen) <= MOST_A_TURN
    assert (slow.ready(), slow.ready("dead")) == (0, COUNT)


def test_messages_that_expire_anywhere_together_are_dropped_in_slices(slow: Stage) -> None:
    slow.queue("dead")
    slow.queue("q", {**TO_DEAD, "x-expire-mode": "anywhere"})
    slow.publish(*[b"m"] * COUNT, expiration="1000")
    fallen = watched(slow, slow.ready, 2)
    assert max(fallen) <= 5 * MOST_A_TURN
    assert (slow.ready(), slow.ready("dead")) == (0, COUNT)


def test_messages_of_many_queues_that_expire_together_are_dropped_in_slices(slow: Stage) -> None:
    queues = [slow.queue(f"q{number}", {"x-message-ttl": 1000}) for number in range(400)]
    for queue in queues:
        slow.publish(b"m", b"n", to=queue.name)
    fallen = watched(slow, lambda: sum(map(len, queues)), 2)
    assert max(fallen) <= MOST_A_TURN
    assert sum(map(len, queues)) == 0


def test_queues_that_expire_together_are_deleted_in_slices(slow: Stage) -> None:
    for number in range(400):
        slow.queue(f"q{number}", {"x-expires": 1000})
    fallen = watched(slow, lambda: len(slow.vhost.queue_by_name), 2)
    assert max(fallen) <= MOST_A_TURN
    assert not slow.vhost.queue_by_name


def test_messages_due_together_in_many_queues_are_released_in_slices(slow: Stage) -> None:
    queues = [slow.queue(f"q{number}", {"x-delayed-delivery": True}) for number in range(100)]
    for queue in queues:
        slow.publish(*[b"m"] * 5, to=queue.name, headers={"x-delay": 1000})
    fallen = watched(slow, lambda: -sum(map(len, queues)), 2)
    assert max(fallen) <= MOST_A_TURN
    assert sum(map(len, queues)) == 500


def test_a_new_consumer_skips_many_expired_messages(slow: Stage) -> None:
    filled(slow, {"x-message-ttl": 1000})
    assert isinstance(slow.clock, TurnClock)
    slow.clock._now_s += 2  # their timer is about to ring
    slow.publish(b"alive")
    recipient = Recipient()
    recipient.consume(slow.vhost.queue("q"))
    slow.vhost.queue("q").dispatch()
    assert slow.ready() > COUNT - 1100
    watched(slow, slow.ready)
    assert recipient.bodies == [b"alive"]
