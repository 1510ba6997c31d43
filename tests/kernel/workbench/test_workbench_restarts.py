"""Removed messages after a crash: positions, expiry, deleted queues and virtual hosts."""

import pytest

from gateway.kernel.errors import NotFound
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.workbench.jobs import JobState
from tests.kernel.workbench.bench import Bench


def test_an_undo_takes_no_later_message_with_the_position_of_a_consumed_one() -> None:
    bench = Bench()
    bench.publish(b"x1")
    job = bench.run("move", "x")
    moved = bench.queue("b").get()
    assert moved is not None
    bench.queue("b").settle(moved, DeliveryOutcome.ACCEPTED)
    bench.broker.commit()
    bench = bench.crash()
    bench.broker.publish("b", b"later", is_persistent=True)
    assert job.removed is not None
    undone = bench.undo(job.removed.record.number)
    assert (undone.counts.done, undone.counts.gone) == (0, 1)
    assert (bench.bodies("a"), bench.bodies("b")) == ([], [b"later"])


def test_what_is_removed_is_forgotten_when_its_time_is_over() -> None:
    bench = Bench()
    bench.publish(b"x1", b"x2")
    bench.run("delete", "x")
    bench = bench.crash()
    assert len(bench.broker.kernel.workbench.undoable) == 1
    bench.broker.advance(bench.broker.kernel.workbench.rules.undo_window_s + 1)
    bench.broker.commit()
    assert bench.broker.kernel.workbench.undoable == []
    assert bench.broker.store.reopened().highest_ids() == (0, 0)


def test_transient_messages_are_put_back_until_a_restart() -> None:
    bench = Bench()
    bench.publish(b"x1", is_persistent=False)
    first = bench.run("delete", "x")
    assert first.removed is not None
    bench.undo(first.removed.record.number)
    assert bench.bodies() == [b"x1"]
    second = bench.run("delete", "x")
    assert second.removed is not None
    bench = bench.crash()
    assert bench.undo(second.removed.record.number).counts.gone == 1
    assert bench.bodies() == []


def test_an_action_of_a_deleted_queue_cannot_be_undone() -> None:
    bench = Bench()
    bench.publish(b"x1")
    job = bench.run("delete", "x")
    bench.broker.vhost.delete_queue(bench.queue("a"))
    assert job.removed is not None
    with pytest.raises(NotFound, match="no queue 'a' in vhost '/'"):
        bench.broker.kernel.workbench.undo(job.removed.record.number, "guest")


def test_a_deleted_virtual_host_takes_its_removed_messages_along() -> None:
    bench = Bench()
    bench.publish(b"x1")
    bench.run("delete", "x")
    bench.broker.kernel.delete_vhost("/")
    bench.broker.advance(1)
    bench.broker.commit()
    assert bench.broker.kernel.workbench.undoable == []
    assert bench.broker.store.reopened().highest_ids() == (0, 0)


def test_a_cancelled_job_keeps_what_it_has_done() -> None:
    bench = Bench()
    bench.publish(*(f"x{number}".encode() for number in range(40)))
    removed = bench.keep("delete")
    job = bench.job("delete", "x", removed)
    steps = job.steps(lambda: 0)
    next(steps)
    job.cancel()
    assert list(steps) == []
    bench.broker.commit()
    assert (job.state, 0 < job.counts.done < 40) == (JobState.CANCELLED, True)
    bench = bench.crash()
    assert len(bench.bodies()) == 40 - job.counts.done
    bench.undo(removed.record.number)
    assert bench.bodies() == [f"x{number}".encode() for number in range(40)]


def test_a_long_queue_is_searched_without_being_loaded() -> None:
    bench = Bench()
    bench.publish(*(f"x{number}".encode() for number in range(500)))
    resident = sum(1 for _ in bench.queue("a").ready.resident())
    assert len(bench.bodies()) == 500
    assert sum(1 for _ in bench.queue("a").ready.resident()) == resident < 100
