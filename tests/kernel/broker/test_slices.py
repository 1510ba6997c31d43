"""Long work runs in slices: policies over many queues, expiry, limits and deletions of very many messages."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from gateway.kernel.clock import SLICE_S
from gateway.kernel.errors import NotAllowed, NotFound, PreconditionFailed
from gateway.kernel.journal.disk_backlog import FILLING_LIMIT, MOST_SLICES
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker
from tests.clocks import LOOK_S, TickingClock, TurnClock


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

    clock.background.add(work())
    first = len(done)
    assert 0 < first <= SLICE_S / LOOK_S + 1
    clock.advance(0)
    assert done == list(range(100))


def test_a_policy_is_applied_to_many_queues_in_slices_and_to_new_ones_at_once(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    for number in range(200):
        broker.vhost.declare_queue(f"q{number}")
    broker.kernel.put_policy(policy({"max-length": 1}))
    late = [queue for queue in broker.vhost.queue_by_name.values() if not queue.settings]
    assert 100 < len(late) < 200, "only the first slice is done at once"
    assert broker.vhost.declare_queue("new").settings.number("max-length") == 1
    clock.advance(0)
    assert all(queue.settings.number("max-length") == 1 for queue in late)


def test_a_newer_policy_replaces_one_that_is_still_being_applied(clock: TickingClock) -> None:
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
def test_very_many_messages_are_removed_in_slices(
    clock: TickingClock, definition: dict[str, Value], resident: int
) -> None:
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


def test_a_queue_does_not_grow_while_many_messages_are_removed(
    clock: TickingClock,
) -> None:
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q")
    for _ in range(3000):
        broker.publish("q", b"old")
    broker.kernel.put_policy(policy({"max-length": 10}))
    before = len(queue)
    broker.publish("q", b"new")
    assert before - 10 < len(queue) <= before
    broker.advance(0)
    assert len(queue) == 10


def test_a_queue_with_very_many_bindings_is_deleted_in_slices(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    exchange = broker.vhost.declare_exchange("x", "direct", is_durable=True)
    for number in range(1000):
        broker.vhost.bind(exchange, queue, f"key.{number}")
    broker.vhost.delete_queue(queue)
    assert 0 < broker.vhost.bindings.count < 1000
    assert not queue.is_deleted
    broker.advance(0)
    assert broker.vhost.bindings.count == 0
    assert queue.is_deleted


def queue_with_many_bindings(broker: MemoryBroker, **properties: object) -> Queue:
    queue = broker.vhost.declare_queue("q", is_durable=True, **properties)  # type: ignore[arg-type]
    exchange = broker.vhost.declare_exchange("x", "direct", is_durable=True)
    for number in range(1000):
        broker.vhost.bind(exchange, queue, f"key.{number}")
    return queue


def test_a_queue_that_is_being_deleted_is_not_found_and_can_be_declared_again(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    vhost, old = broker.vhost, queue_with_many_bindings(broker)
    vhost.delete_queue(old)
    assert not old.is_deleted
    with pytest.raises(NotFound):
        vhost.queue("q")
    new = vhost.declare_queue("q", is_durable=True, arguments={"x-max-length": 1})
    assert old.is_deleted
    vhost.bind(vhost.exchange("x"), new, "key.999")
    broker.advance(0)
    assert vhost.queue("q") is new
    broker.commit()
    after = broker.crashed().vhost
    assert after.queue("q").arguments == {"x-max-length": 1}
    assert [binding.routing_key for binding in after.bindings] == ["key.999"]


def test_the_name_of_a_released_exclusive_queue_can_be_used_at_once(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    owner = object()
    old = queue_with_many_bindings(broker, owner=owner)
    broker.vhost.release(owner)
    new = broker.vhost.declare_queue("q", owner=object())
    broker.advance(0)
    assert old.is_deleted
    assert broker.vhost.queue("q") is new


def test_an_exchange_with_very_many_bindings_is_deleted_in_slices(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    exchange = broker.vhost.declare_exchange("x", "topic", is_durable=True)
    for number in range(1000):
        broker.vhost.bind(exchange, queue, f"key.{number}")
    assert broker.vhost.delete_exchange("x")
    assert 0 < broker.vhost.bindings.count < 1000
    broker.advance(0)
    assert broker.vhost.bindings.count == 0
    assert "x" not in broker.vhost.exchange_by_name


def test_a_large_virtual_host_is_deleted_in_slices_and_cannot_be_used_meanwhile(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    vhost = broker.kernel.declare_vhost("large")
    for number in range(1000):
        vhost.declare_queue(f"q{number}", is_durable=True)
    broker.kernel.delete_vhost("large")
    assert 0 < len(vhost.queue_by_name) < 1000
    with pytest.raises(NotAllowed, match="vhost large is being deleted"):
        broker.kernel.vhost("large")
    with pytest.raises(PreconditionFailed, match="vhost 'large' is being deleted"):
        broker.kernel.declare_vhost("large")
    broker.advance(0)
    assert "large" not in broker.kernel.vhost_by_name
    assert not broker.kernel.declare_vhost("large").queue_by_name


def test_long_jobs_share_a_slice_and_take_turns(clock: TickingClock) -> None:
    done: list[str] = []

    def work(name: str) -> Iterator[None]:
        for _ in range(20):
            done.append(name)
            yield

    clock.background.add(work("a"))
    clock.background.add(work("b"))
    assert set(done) == {"a"}
    clock.advance(0)
    assert done[: done.index("b") + 2].count("a") < 20, "one slice each, alternating"
    assert sorted(done) == ["a"] * 20 + ["b"] * 20


def test_a_failing_job_does_not_stop_the_others(clock: TickingClock) -> None:
    done: list[int] = []

    def failing() -> Iterator[None]:
        for _ in range(20):
            yield
        raise RuntimeError("broken")

    def succeeding() -> Iterator[None]:
        done.append(1)
        yield

    clock.background.add(failing())
    clock.background.add(succeeding())
    for _ in range(3):
        with suppress(RuntimeError):
            clock.advance(0)
    assert done == [1]


def test_long_jobs_wait_while_the_store_has_too_much_to_write() -> None:
    clock = TurnClock()
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for _ in range(5000):
        broker.publish("q", bytes(2048), is_persistent=True)
    broker.end_turn()
    clock.background.add(publishing(broker, 100))
    for _ in range(50):
        broker.end_turn()
        clock.turn(1)
    assert 5000 < len(queue) < 5000 + 6 * MOST_SLICES
    broker.store.commit()
    for _ in range(50):
        broker.end_turn()
        clock.turn(1)
    assert len(queue) == 5100


def test_long_jobs_go_on_beside_publishers_that_are_faster_than_the_disk() -> None:
    clock = TurnClock()
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    broker.vhost.declare_queue("flood", is_durable=True)
    clock.background.add(publishing(broker, 100))
    for _ in range(50):
        broker.publish("flood", bytes(FILLING_LIMIT), is_persistent=True)
        broker.end_turn()
        assert broker.kernel.journal.disk_backlog.is_filling
        clock.turn(1)
        broker.end_turn()
        broker.store.commit()
    assert len(queue) == 100


def publishing(broker: MemoryBroker, count: int) -> Iterator[None]:
    """Return the steps of a job that records changes."""
    for _ in range(count):
        broker.publish("q", b"x", is_persistent=True)
        yield
