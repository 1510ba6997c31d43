"""Policies over many queues and exchanges are applied in short slices, and to all of them.

Rules: R153.
"""

from collections.abc import Callable

import pytest

from gateway.kernel.clock import SLICE_S
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.patterns import Compile, Pattern
from gateway.kernel.settings.policies import Policies
from gateway.patterns import compile_pattern
from gateway.testing import MemoryBroker
from gateway.testing.clock import FakeClock, FakeTimer

MATCH_S = 0.000_1
"""The cost of one pattern match on the clock of these tests."""

QUEUES = 2_000
EXCHANGES = 1_000


class WorkClock(FakeClock):
    """A clock that advances only by pattern matches, and records the time of each call of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.worked_s = 0.0
        self.slices: list[float] = []

    def monotonic_s(self) -> float:
        return self.worked_s

    def timed(self, call: Callable[[], None]) -> None:
        before = self.worked_s
        call()
        self.slices.append(self.worked_s - before)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> FakeTimer:
        return super().call_later(delay_s, lambda: self.timed(call))


class CostlyPattern:
    """A pattern whose matches advance the clock."""

    def __init__(self, pattern: Pattern, clock: WorkClock) -> None:
        self._pattern = pattern
        self._clock = clock

    def matches(self, text: str) -> bool:
        self._clock.worked_s += MATCH_S
        return self._pattern.matches(text)


@pytest.fixture
def clock() -> WorkClock:
    return WorkClock()


@pytest.fixture
def broker(clock: WorkClock) -> MemoryBroker:
    """A broker with many queues and exchanges, in which pattern matches cost time."""
    broker = MemoryBroker(clock=clock)
    compile_costly: Compile = lambda pattern: CostlyPattern(compile_pattern(pattern), clock)  # noqa: E731
    broker.vhost.policies.__init__(compile_costly)  # type: ignore[misc]  # replaces the compiler of a built broker
    assert isinstance(broker.vhost.policies, Policies)
    for number in range(QUEUES):
        broker.vhost.declare_queue(f"q{number}")
    for number in range(EXCHANGES):
        broker.vhost.declare_exchange(f"x{number}", "direct")
    clock.slices.clear()
    return broker


def policy(name: str, limit: int, *, is_operator: bool = False) -> PolicyRecord:
    apply_to = "queues" if is_operator else "all"
    return PolicyRecord("/", name, is_operator, "^[qx]", apply_to, 0, {"max-length": limit})


def limits_of(broker: MemoryBroker) -> set[int | None]:
    return {queue.settings.number("max-length") for queue in broker.vhost.queue_by_name.values()}


def policies_of_exchanges(broker: MemoryBroker) -> set[str]:
    settings = [exchange.settings for exchange in broker.vhost.exchange_by_name.values() if exchange.name[:1] == "x"]
    return {each.policy.name if each.policy is not None else "" for each in settings}


def require_short_slices(clock: WorkClock, least_work_s: float) -> None:
    assert sum(clock.slices) >= least_work_s * 0.99
    assert max(clock.slices) <= SLICE_S + 3 * MATCH_S
    assert len(clock.slices) >= least_work_s / (SLICE_S + 3 * MATCH_S)


@pytest.mark.parametrize("is_operator", [False, True], ids=["policy", "operator policy"])
def test_setting_and_removing_a_policy_takes_effect_in_slices(
    broker: MemoryBroker, clock: WorkClock, is_operator: bool
) -> None:
    record = policy("p", 7, is_operator=is_operator)
    clock.timed(lambda: broker.kernel.put_policy(record))
    clock.advance(0)
    assert limits_of(broker) == {7}
    require_short_slices(clock, QUEUES * MATCH_S)
    another = policy("another", 9)
    clock.timed(lambda: broker.kernel.put_policy(another))
    clock.advance(0)
    clock.slices.clear()
    clock.timed(lambda: broker.kernel.remove_policy(record))
    clock.advance(0)
    assert limits_of(broker) == {9}
    assert policies_of_exchanges(broker) == {"another"}
    require_short_slices(clock, (QUEUES + EXCHANGES) * MATCH_S)


def test_a_policy_is_applied_to_many_exchanges_in_slices(broker: MemoryBroker, clock: WorkClock) -> None:
    for queue in list(broker.vhost.queue_by_name.values()):
        broker.vhost.delete_queue(queue)
    clock.timed(lambda: broker.kernel.put_policy(policy("p", 7)))
    assert policies_of_exchanges(broker) == {"", "p"}, "only the first slice is done at once"
    clock.advance(0)
    assert policies_of_exchanges(broker) == {"p"}
    require_short_slices(clock, EXCHANGES * MATCH_S)


def test_several_policy_changes_are_applied_in_one_pass(broker: MemoryBroker, clock: WorkClock) -> None:
    for number in range(20):
        clock.timed(lambda number=number: broker.kernel.put_policy(policy(f"p{number:02}", number)))  # type: ignore[misc]
    assert max(clock.slices[1:]) == 0, "a pass in progress continues in its next slice"
    clock.advance(0)
    assert limits_of(broker) == {0}
    searches = sum(clock.slices) / MATCH_S
    assert searches < 2 * (QUEUES + EXCHANGES)


def test_a_new_pass_can_begin_after_the_last_one(broker: MemoryBroker, clock: WorkClock) -> None:
    for limit in (1, 2, 3):
        broker.kernel.put_policy(policy("p", limit))
        clock.advance(0)
        assert limits_of(broker) == {limit}


def test_queues_and_exchanges_may_be_deleted_and_declared_during_a_pass(broker: MemoryBroker, clock: WorkClock) -> None:
    broker.kernel.put_policy(policy("p", 7))
    for number in range(0, QUEUES, 2):
        broker.vhost.delete_queue(broker.vhost.queue(f"q{number}"))
        broker.vhost.declare_queue(f"qq{number}")
    broker.vhost.delete_exchange("x999")
    clock.advance(0)
    assert limits_of(broker) == {7}
