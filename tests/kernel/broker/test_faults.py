"""Containment of exceptions in callbacks: each is counted and reported once, and other callbacks are still called."""

import pytest

from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT, described, place_of
from gateway.kernel.journal.journal import Lsn
from gateway.testing import MemoryBroker


def fail() -> None:
    raise RuntimeError("no good")


def faults_of(broker: MemoryBroker) -> list[Event]:
    events: list[Event] = []
    broker.kernel.events.subscribe(lambda event: events.append(event) if event.name == FAULT else None)
    return events


def test_an_exception_in_a_durability_callback_does_not_stop_the_others() -> None:
    broker = MemoryBroker()
    faults, answers = faults_of(broker), []
    broker.vhost.declare_queue("q", is_durable=True)
    journal = broker.kernel.journal
    journal.when_durable(journal.pending_lsn, fail)
    journal.when_durable(journal.pending_lsn, lambda: answers.append("answered"))
    broker.commit()
    assert answers == ["answered"]
    assert [fault.details["error"] for fault in faults] == ["RuntimeError: no good"]


def test_an_exception_in_an_end_of_turn_callback_does_not_stop_the_turn() -> None:
    broker = MemoryBroker()
    faults, calls = faults_of(broker), []
    broker.kernel.journal.at_end_of_turn(fail)
    broker.kernel.journal.at_end_of_turn(lambda: calls.append("called"))
    broker.vhost.declare_queue("q", is_durable=True)
    broker.commit()
    assert calls == ["called"]
    assert broker.kernel.journal.watermark > Lsn(0)
    assert "q" in broker.crashed().vhost.queue_by_name
    assert len(faults) == 1


def test_an_exception_in_an_event_listener_does_not_stop_the_others() -> None:
    broker = MemoryBroker()

    def listener(event: Event) -> None:
        raise RuntimeError(event.name)

    broker.kernel.events.subscribe(listener)
    events: list[str] = []
    broker.kernel.events.subscribe(lambda event: events.append(event.name))
    broker.vhost.declare_queue("q")
    assert "queue.created" in events
    assert "q" in broker.vhost.queue_by_name
    assert broker.kernel.faults.count_by_kind["event listener"] >= 1


def test_an_exception_without_a_description_is_described_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even that")

    assert described(Mute()) == "Mute"
    assert described(ValueError()) == "ValueError"
    assert len(described(ValueError("x" * 10_000))) < 400


def test_the_location_of_a_fault_is_its_file_and_line() -> None:
    with pytest.raises(RuntimeError) as raised:
        fail()
    assert place_of(raised.value) == f"{__file__}:{fail.__code__.co_firstlineno + 1}"
