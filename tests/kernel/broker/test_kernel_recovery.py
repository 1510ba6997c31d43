"""Recovery: a restart restores all that was committed, and nothing else (R124, R132)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import pytest

from gateway.kernel.broker.recovery import Recovery, recover
from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Enqueued, Put
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import MOST_AT_ONCE
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker, Recipient
from tests.clocks import TurnClock


def test_every_kind_of_entity_is_recovered(broker: MemoryBroker) -> None:
    kernel = broker.kernel
    other = kernel.declare_vhost("other", description="another", tags=["blue"])
    user = UserRecord("guest", "hash", "sha256", ["monitoring"], {})
    permission = PermissionRecord("other", "guest", ".*", "w", "r")
    policy = PolicyRecord("other", "p", True, "^q", "queues", 7, {"max-length": 1})
    parameter = ParameterRecord("other", "shovel", "s", {"src": ["a"]})
    kernel.directory.put_user(user)
    kernel.directory.put_permission(permission)
    kernel.put_policy(policy)
    kernel.parameters.put(parameter)
    exchange = other.declare_exchange(
        "x", "headers", is_durable=True, is_auto_delete=True, is_internal=True, arguments={"alternate-exchange": "y"}
    )
    inner = other.declare_exchange("y", "fanout", is_durable=True)
    queue = other.declare_queue("q", is_durable=True, is_auto_delete=True, arguments={"x-max-length": 5})
    other.bind(exchange, queue, "k", {"x-match": "any", "a": 1})
    other.bind(exchange, inner, "", {"b": None})
    broker.commit()
    after = broker.crashed().kernel
    assert after.vhost("other").record == other.record
    assert after.directory.user("guest") == user
    assert list(after.directory.permissions) == [permission]
    assert (list(after.policies.values()), list(after.parameters.values())) == ([policy], [parameter])
    x, q = after.vhost("other").exchange("x"), after.vhost("other").queue("q")
    assert (x.type_name, x.is_auto_delete, x.is_internal, x.alternate) == ("headers", True, True, "y")
    assert (q.is_durable, q.is_auto_delete, q.arguments) == (True, True, {"x-max-length": 5})
    assert {
        (each.destination.name, each.routing_key, str(each.arguments)) for each in after.vhost("other").bindings
    } == {
        ("q", "k", "{'x-match': 'any', 'a': 1}"),
        ("y", "", "{'b': None}"),
    }


def test_a_stream_keeps_its_incarnation_and_its_successor_has_another(broker: MemoryBroker) -> None:
    """Also after a restart, which may assign the number of a deleted stream again."""

    def declared(running: MemoryBroker) -> Stream:
        stream = running.kernel.vhost("/").declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
        running.commit()
        assert isinstance(stream, Stream)
        return stream

    first = declared(broker)
    after = broker.crashed()
    kept = after.kernel.vhost("/").queue("s")
    assert isinstance(kept, Stream)
    assert kept.incarnation == first.incarnation
    after.kernel.vhost("/").delete_queue(kept)
    after.commit()
    again = after.crashed()
    again.clock.advance(1)
    second = declared(again)
    assert (second.id, second.incarnation == first.incarnation) == (first.id, False)


SURVIVAL = [
    pytest.param(True, True, True, id="R124: persistent in durable"),
    pytest.param(True, False, False, id="R124: transient in durable"),
    pytest.param(False, True, False, id="R124: persistent in transient"),
    pytest.param(False, False, False, id="R124: transient in transient"),
]


@pytest.mark.parametrize(("queue_is_durable", "is_persistent", "survives"), SURVIVAL)
def test_only_persistent_messages_in_durable_queues_survive_a_restart(
    broker: MemoryBroker, queue_is_durable: bool, is_persistent: bool, survives: bool
) -> None:
    broker.vhost.declare_queue("q", is_durable=queue_is_durable)
    broker.publish("q", b"body", is_persistent=is_persistent)
    broker.commit()
    after = broker.crashed()
    queue = after.vhost.queue("q") if queue_is_durable else after.vhost.declare_queue("q")
    assert len(queue) == survives


def test_uncommitted_messages_are_lost(broker: MemoryBroker) -> None:
    broker.vhost.declare_queue("q", is_durable=True)
    broker.publish("q", b"committed", is_persistent=True)
    broker.commit()
    broker.publish("q", b"staged", is_persistent=True)
    broker.end_turn()
    recipient = Recipient()
    recipient.consume(broker.crashed().vhost.queue("q"))
    assert recipient.bodies == [b"committed"]


def test_committed_settlements_survive_a_restart(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for body in (b"1", b"2", b"3", b"4"):
        broker.publish("q", body, is_persistent=True)
    recipient = Recipient()
    recipient.consume(queue)
    recipient.settle(1)
    recipient.settle(3, DeliveryOutcome.REJECTED)
    broker.commit()
    recipient.settle(4)
    after = Recipient()
    after.consume(broker.crashed().vhost.queue("q"))
    assert after.bodies == [b"2", b"4"]


def test_after_a_kill_every_message_is_flagged_as_redelivered(broker: MemoryBroker) -> None:
    """AMQP 4.8.17: until it is settled, even after further clean stops."""
    broker.vhost.declare_queue("q", is_durable=True)
    broker.publish("q", b"old", is_persistent=True)
    broker.commit()
    restarted = broker.crashed()
    restarted.publish("q", b"new", is_persistent=True)
    recipient = Recipient()
    recipient.consume(restarted.stopped().stopped().vhost.queue("q"))
    assert [(each.body, each.redelivered) for each in recipient.received] == [(b"old", True), (b"new", False)]


def test_after_a_clean_stop_only_requeued_messages_are_flagged_as_redelivered(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for body in (b"seen", b"fresh"):
        broker.publish("q", body, is_persistent=True)
    before = Recipient()
    before.consume(queue, prefetch=1)
    before.leave()
    after = Recipient()
    after.consume(broker.stopped().vhost.queue("q"))
    assert [(each.body, each.redelivered) for each in after.received] == [(b"seen", True), (b"fresh", False)]


def test_after_a_stop_before_all_deliveries_are_requeued_every_message_is_flagged_as_redelivered() -> None:
    clock, count = TurnClock(is_ticking=False), 2 * MOST_AT_ONCE
    broker = MemoryBroker(clock=clock)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for number in range(count):
        broker.publish("q", b"%d" % number, is_persistent=True)
    before = Recipient()
    before.consume(queue)
    clock.is_ticking = True
    before.leave()
    assert 0 < len(queue) < count
    restarted = broker.stopped()
    clock.is_ticking = False
    after = Recipient()
    after.consume(restarted.vhost.queue("q"))
    assert [each.body for each in after.received] == [b"%d" % number for number in range(count)]
    assert all(each.redelivered for each in after.received)


def test_after_a_restart_an_auto_delete_queue_waits_for_its_first_consumer(broker: MemoryBroker) -> None:
    """R32."""
    broker.vhost.declare_queue("q", is_durable=True, is_auto_delete=True)
    broker.commit()
    vhost = broker.crashed().vhost
    vhost.delete_queue_if_done(vhost.queue("q"))
    assert "q" in vhost.queue_by_name


def test_a_new_queue_does_not_inherit_messages_of_a_deleted_one(broker: MemoryBroker) -> None:
    """Queue numbers are reused after a restart only when nothing of the old queue is left."""
    queue = broker.vhost.declare_queue("old", is_durable=True)
    broker.publish("old", b"body", is_persistent=True)
    Recipient().consume(queue)
    broker.vhost.delete_queue(queue)
    broker.commit()
    restarted = broker.crashed()
    restarted.vhost.declare_queue("new", is_durable=True)
    restarted.commit()
    assert len(restarted.crashed().vhost.queue("new")) == 0


def test_an_entity_of_an_unknown_kind_fails_the_start(broker: MemoryBroker) -> None:
    @dataclass(frozen=True, slots=True)
    class UnknownRecord(Entity):
        kind: ClassVar[str] = "novelty"
        name: str

    with pytest.raises(StorageError, match="a record of kind 'novelty', which this version does not support"):
        recover(broker.kernel, [Put(UnknownRecord("n"))])


def test_a_message_of_a_deleted_queue_is_skipped(broker: MemoryBroker) -> None:
    assert recover(broker.kernel, [Enqueued(99, 1, 1, 0)]) == 0


def test_recovery_runs_in_steps_and_counts_restored_records(broker: MemoryBroker) -> None:
    for number in range(1200):
        broker.vhost.declare_queue(f"q{number}", is_durable=True)
    for _ in range(600):
        broker.publish("q0", b"body", is_persistent=True)
    broker.commit()
    store = broker.store.reopened()
    kernel = MemoryBroker().kernel
    kernel.vhost_by_name.clear()
    recovery = Recovery(kernel, store.record_count())
    seen = [recovery.done for _ in recovery.steps(store.recover())]
    steps = [after - before for before, after in pairwise(seen)]
    assert len(seen) >= 6
    assert max(steps) <= 500
    assert (recovery.done, recovery.messages) == (recovery.total, 600)
