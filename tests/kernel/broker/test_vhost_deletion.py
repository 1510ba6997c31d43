"""The deletion of a virtual host, of large sessions and of queues with many consumers does little work in each step."""

from collections.abc import Callable, Iterator

import pytest

from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.journal.records.batches import BatchPositionRecord, BatchRecord
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker
from gateway.testing.broker import Recipient, header_of
from tests.clocks import TickingClock
from tests.kernel.session_clients import Client

MANY = 400

#: The most changes that one step of a deletion may record.
MOST_CHANGES = 70


def message(key: str) -> Message:
    return Message("amq.topic", key, header_of(is_persistent=True), b"body")


def wills(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        vhost.wills.leave(f"c{number}", message("k"), False, 60)


def retained(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        vhost.retained.keep(message(f"a.{number}"))


def producers(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        vhost.producers.published("p", f"q{number}", 1)


def batches(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        record = BatchRecord(vhost.name, f"b{number}", "u", "p", f"q{number}", 1, b"[]", 0, "", "k", False, "", 0)
        vhost.batches.commit(record)
        vhost.batches.advance(BatchPositionRecord(vhost.name, record.name, part=1))


def queues(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        queue = vhost.declare_queue(f"q{number}", is_durable=True)
        vhost.bind(vhost.exchange("amq.fanout"), queue, "k")


def exchanges(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        vhost.declare_exchange(f"x{number}", "fanout", is_durable=True)


def policies(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        kernel.put_policy(PolicyRecord(vhost.name, f"p{number}", False, "^x", "queues", 0, {"max-length": 1}))


def parameters(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        kernel.parameters.put(ParameterRecord(vhost.name, "c", f"n{number}", 1))


def permissions(kernel: Broker, vhost: VirtualHost) -> None:
    for number in range(MANY):
        kernel.directory.put_user(UserRecord(f"u{number}", "", "", [], {}))
        kernel.directory.put_permission(PermissionRecord(vhost.name, f"u{number}", "", "", ""))


def changes_by_step(broker: MemoryBroker, steps: Iterator[None]) -> list[int]:
    """Run the steps; return the numbers of changes that they recorded."""
    changes, counts = broker.kernel.journal._changes, []
    before = len(changes)
    for _ in steps:
        counts.append(len(changes) - before)
        before = len(changes)
    return [*counts, len(changes) - before]


@pytest.mark.parametrize(
    "fill",
    [wills, retained, producers, batches, queues, exchanges, policies, parameters, permissions],
    ids=lambda fill: fill.__name__,
)
def test_a_step_of_the_deletion_of_a_virtual_host_is_short(fill: Callable[[Broker, VirtualHost], None]) -> None:
    broker = MemoryBroker()
    vhost = broker.kernel.declare_vhost("full")
    fill(broker.kernel, vhost)
    broker.commit()
    counts = changes_by_step(broker, broker.kernel._deletions._deleting(vhost))
    assert sum(counts) >= MANY
    assert max(counts) <= MOST_CHANGES
    assert "full" not in broker.kernel.vhost_by_name
    broker.commit()
    assert "full" not in repr(list(broker.store.reopened().recover()))


def test_a_virtual_host_is_deleted_in_slices_and_then_its_name_is_free(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    vhost = broker.kernel.declare_vhost("full")
    permissions(broker.kernel, vhost)
    policies(broker.kernel, vhost)
    clock.advance(0)
    broker.kernel.delete_vhost("full")
    assert len(broker.kernel.policies) > MANY // 2
    clock.advance(0)
    assert not broker.kernel.policies
    assert not broker.kernel.directory.permissions
    assert broker.kernel.declare_vhost("full") is not vhost


def test_a_step_of_the_end_of_a_large_session_is_short() -> None:
    broker = MemoryBroker()
    client = Client(broker)
    client.connect()
    for number in range(MANY):
        client.subscribe(f"a.{number}")
        client.session.qos2_state.receive(number + 1)
        client.session.qos2_state.proceed(number + 1)
    broker.commit()
    counts = changes_by_step(broker, broker.vhost.sessions._erasing(client.session))
    assert sum(counts) >= 3 * MANY
    assert max(counts) <= MOST_CHANGES


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


def test_a_session_with_many_unfinished_deliveries_ends_in_slices(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    client = Client(broker)
    client.connect()
    for number in range(MANY):
        client.session.qos2_state.receive(number + 1)
    broker.commit()
    broker.vhost.sessions.end(client.session)
    assert len(broker.kernel.journal._changes) < MANY
    ready: list[bool] = []
    assert not broker.vhost.sessions.prepare("sensor", True, "", lambda: ready.append(True))
    clock.advance(0)
    assert ready == [True]
    broker.commit()
    assert "sensor" not in repr(list(broker.store.reopened().recover()))


def test_a_queue_with_very_many_consumers_is_deleted_in_slices(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    recipients = [Recipient() for _ in range(MANY)]
    for recipient in recipients:
        recipient.consume(queue)
    broker.vhost.delete_queue(queue)
    assert 0 < len(queue.consumers) < MANY
    assert broker.vhost.queues.is_being_deleted("q")
    clock.advance(0)
    assert (len(queue.consumers), queue.is_deleted) == (0, True)


def test_delayed_messages_of_a_deleted_queue_are_removed_in_slices(clock: TickingClock) -> None:
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for number in range(MANY):
        queue.ensure_delayed().hold(message("q"), 1_000_000 + number)
    broker.commit()
    broker.vhost.delete_queue(queue)
    assert len(broker.kernel.journal._changes) < 2 * MANY, "two changes for each message"
    clock.advance(0)
    broker.commit()
    assert not broker.store.held_ids
