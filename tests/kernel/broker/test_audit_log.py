"""The audit record: entries, limits, events and recovery."""

from dataclasses import replace

import pytest

from gateway.kernel.acting import Actor
from gateway.kernel.events import Event
from gateway.testing.broker import MemoryBroker

ALICE = Actor("alice", "10.0.0.1", "HTTP")


def actions(broker: MemoryBroker) -> list[str]:
    """The actions in the record, the newest first."""
    return [entry.action for entry in broker.kernel.audit.newest_first()]


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def test_entries_survive_a_crash_with_their_numbers(broker: MemoryBroker) -> None:
    broker.kernel.audit.record(ALICE, "user.created", subject="bob", after={"tags": ["x"]})
    broker.kernel.audit.record(ALICE, "user.deleted", subject="bob", before={"tags": ["x"]})
    broker.commit()
    restarted = broker.crashed()
    restarted.kernel.audit.record(ALICE, "queue.purged", "/", "q", details={"messages": 3})
    purged, deleted, created = restarted.kernel.audit.newest_first()
    assert [purged.number, deleted.number, created.number] == [3, 2, 1]
    assert (created.user, created.address, created.surface, created.after) == (
        "alice",
        "10.0.0.1",
        "HTTP",
        {"tags": ["x"]},
    )
    assert deleted.before == {"tags": ["x"]}


def test_an_entry_is_lost_with_the_change_that_it_reports(broker: MemoryBroker) -> None:
    broker.commit()
    broker.vhost.declare_queue("q", is_durable=True)
    broker.kernel.audit.record(ALICE, "queue.created", "/", "q")
    restarted = broker.crashed()
    assert (actions(restarted), "q" in restarted.vhost.queue_by_name) == ([], False)


def test_the_oldest_entries_are_dropped_above_the_number(broker: MemoryBroker) -> None:
    log = broker.kernel.audit
    log.rules = replace(log.rules, max_entries=2)
    for number in range(5):
        log.record(ALICE, f"a.{number}")
    broker.commit()
    assert actions(broker) == actions(broker.crashed()) == ["a.4", "a.3"]


def test_the_oldest_entries_are_dropped_above_the_bytes(broker: MemoryBroker) -> None:
    log = broker.kernel.audit
    log.record(ALICE, "a.0")
    first = log.size
    log.record(ALICE, "a.1")
    log.rules = replace(log.rules, max_bytes=3 * (log.size - first))
    for number in range(2, 9):
        log.record(ALICE, f"a.{number}")
    assert actions(broker) == ["a.8", "a.7", "a.6"]


def test_old_entries_are_dropped(broker: MemoryBroker) -> None:
    log = broker.kernel.audit
    log.rules = replace(log.rules, max_age_s=60)
    log.record(ALICE, "a.0")
    broker.commit()
    broker.clock.advance(61)
    broker.kernel.journal.flush()
    log.record(ALICE, "a.1")
    assert actions(broker) == ["a.1"]
    assert len(log) == 1


def test_a_long_entry_loses_its_states(broker: MemoryBroker) -> None:
    log = broker.kernel.audit
    log.record(ALICE, "a.0", "/", "q", after={"text": "x" * log.rules.longest_entry}, details={"count": 3})
    (entry,) = log.newest_first()
    assert entry.after is None
    assert entry.details["count"] == 3
    assert "bytes are more than 16384" in str(entry.details["left_out"])


def test_an_entry_with_a_name_that_cannot_be_stored_is_kept(broker: MemoryBroker) -> None:
    broker.kernel.audit.record(ALICE, "a.0", "/", "\ud800")
    broker.commit()
    assert [entry.subject for entry in broker.crashed().kernel.audit.newest_first()] == ["?"]


def test_each_entry_is_an_event(broker: MemoryBroker) -> None:
    seen: list[Event] = []
    broker.kernel.events.subscribe(seen.append)
    broker.kernel.audit.record(ALICE, "user.created", subject="bob", after={"tags": []})
    [entry] = broker.kernel.audit.newest_first()
    details = {
        "number": 1,
        "user": "alice",
        "address": "10.0.0.1",
        "surface": "HTTP",
        "after": {"tags": []},
        "digest": entry.digest,
    }
    assert seen == [Event("audit.user.created", "", "bob", details)]


def test_nothing_is_recorded_with_a_limit_of_0(broker: MemoryBroker) -> None:
    log = broker.kernel.audit
    log.rules = replace(log.rules, max_entries=0)
    log.record(ALICE, "a.0")
    assert len(log) == 0
