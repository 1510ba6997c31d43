"""Long work leaves room for others: policies over many queues, expiry and limits of very many messages."""

from collections.abc import Iterator

import pytest

from gateway.kernel.message import Value
from gateway.kernel.records import PolicyRecord
from gateway.kernel.slices import SLICE_S, in_slices
from gateway.testing import MemoryBroker
from gateway.testing.clock import FakeClock

LOOK_S = 0.001


class TickingClock(FakeClock):
    """Time passes by being looked at, as it does while work is done. Notes how long each call took."""

    def __init__(self) -> None:
        super().__init__()
        self._spent_s = 0.0

    def monotonic_s(self) -> float:
        self._spent_s += LOOK_S
        return self._spent_s


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


def policy(definition: dict[str, Value]) -> PolicyRecord:
    return PolicyRecord("/", "p", False, ".*", "queues", 0, definition)


def test_work_is_done_in_slices_and_in_order(clock: TickingClock) -> None:
    done: list[int] = []

    def work() -> Iterator[None]:
        for number in range(100):
            done.append(number)
            yield

    in_slices(clock, work())
    first = len(done)
    assert 0 < first <= SLICE_S / LOOK_S + 1
    clock.advance(0)
    assert done == list(range(100))


def test_a_policy_reaches_many_queues_bit_by_bit_and_new_ones_at_once(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    for number in range(200):
        broker.vhost.declare_queue(f"q{number}")
    broker.kernel.put_policy(policy({"max-length": 1}))
    late = [queue for queue in broker.vhost.queue_by_name.values() if not queue.settings]
    assert 100 < len(late) < 200, "the first slice is done at once, and no more"
    assert broker.vhost.declare_queue("new").settings.number("max-length") == 1
    clock.advance(0)
    assert all(queue.settings.number("max-length") == 1 for queue in late)


def test_the_newest_of_two_policies_wins_though_the_first_was_not_through(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    queues = [broker.vhost.declare_queue(f"q{number}") for number in range(200)]
    broker.kernel.put_policy(policy({"max-length": 1}))
    broker.vhost.delete_queue(queues.pop())
    broker.kernel.put_policy(policy({"max-length": 2}))
    clock.advance(0)
    assert {queue.settings.number("max-length") for queue in queues} == {2}


@pytest.mark.parametrize(
    "definition",
    [{"message-ttl": 1}, {"max-length": 0}, {"max-length-bytes": 0}],
    ids=lambda definition: next(iter(definition)),
)
@pytest.mark.parametrize("resident", [100, 100_000], ids=["paged", "in memory"])
def test_very_many_messages_go_bit_by_bit(clock: TickingClock, definition: dict[str, Value], resident: int) -> None:
    broker = MemoryBroker(clock=clock, resident_messages=resident)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for _ in range(5000):
        broker.publish("q", b"m", is_persistent=True)
    broker.advance(1)
    broker.kernel.put_policy(policy(definition))
    assert 0 < len(queue) < 5000
    broker.advance(0)
    assert len(queue) == 0
    broker.commit()
    assert not broker.store.held_ids


def test_what_comes_while_many_messages_go_is_not_looked_at_twice(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q")
    for _ in range(3000):
        broker.publish("q", b"old")
    broker.kernel.put_policy(policy({"max-length": 10}))
    before = len(queue)
    broker.publish("q", b"new")
    assert len(queue) == before + 1
    broker.advance(0)
    assert len(queue) == 10
