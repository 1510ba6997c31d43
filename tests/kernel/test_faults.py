"""Exceptions that are contained: counted, told once, and no other callback goes without its call."""

import pytest

from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT, described, place_of
from gateway.kernel.journal.journal import Lsn
from gateway.testing import MemoryBroker


def fail() -> None:
    raise RuntimeError("no good")


def faults_of(broker: MemoryBroker) -> list[Event]:
    told: list[Event] = []
    broker.kernel.events.subscribe(lambda event: told.append(event) if event.name == FAULT else None)
    return told


def test_an_answer_that_fails_keeps_no_other_waiting() -> None:
    broker = MemoryBroker()
    faults, answers = faults_of(broker), []
    broker.vhost.declare_queue("q", is_durable=True)
    journal = broker.kernel.journal
    journal.when_durable(journal.pending_lsn, fail)
    journal.when_durable(journal.pending_lsn, lambda: answers.append("answered"))
    broker.commit()
    assert answers == ["answered"]
    assert [fault.details["error"] for fault in faults] == ["RuntimeError: no good"]


def test_the_end_of_a_turn_that_fails_in_one_place_is_the_end_of_the_turn() -> None:
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


def test_a_listener_that_fails_keeps_no_other_from_being_told() -> None:
    broker = MemoryBroker()

    def listener(event: Event) -> None:
        raise RuntimeError(event.name)

    broker.kernel.events.subscribe(listener)
    told: list[str] = []
    broker.kernel.events.subscribe(lambda event: told.append(event.name))
    broker.vhost.declare_queue("q")
    assert "queue.created" in told
    assert "q" in broker.vhost.queue_by_name
    assert broker.kernel.faults.count_by_kind["event listener"] >= 1


def test_an_exception_that_cannot_describe_itself_has_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even that")

    assert described(Mute()) == "Mute"
    assert described(ValueError()) == "ValueError"
    assert len(described(ValueError("x" * 10_000))) < 400


def test_the_place_is_file_and_line_of_the_part_that_failed() -> None:
    with pytest.raises(RuntimeError) as raised:
        fail()
    assert place_of(raised.value) == f"{__file__}:{fail.__code__.co_firstlineno + 1}"
