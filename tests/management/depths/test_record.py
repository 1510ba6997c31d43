"""The record of the depths of queues: what it answers for each moment is what was in the queues."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.kernel.queueing.queue_identity import QueueIdentity
from tests.management.console import DEPTHS_AGE_MS, DEPTHS_INTERVAL_S
from tests.management.depths.recorded import Depths, RecordedBroker

LONGEST_MS = 2000 * DEPTHS_INTERVAL_S
DAY_S = 86_400


@pytest.fixture
def broker(tmp_path: Path) -> RecordedBroker:
    """A broker with an empty queue `q`, and no sample yet."""
    broker = RecordedBroker(tmp_path)
    broker.declare("q")
    return broker


class Queued(QueueIdentity):
    """The identity and the counts of a queue, without messages."""

    @property
    def unsettled(self) -> int:
        return 0

    def __init__(self, name: str, ready: int) -> None:
        super().__init__("/", name, 1, True, False, None, None)
        self._ready = ready

    def __len__(self) -> int:
        return self._ready


def rows(directory: Path) -> list[int]:
    """Return the number of rows of depths in each file."""
    return [
        sqlite3.connect(path).execute("SELECT count(*) FROM depths").fetchone()[0]
        for path in sorted(directory.glob("*.sqlite"))
    ]


def test_each_moment_has_its_own_depths(broker: RecordedBroker) -> None:
    seen: list[tuple[int, Depths]] = []

    def look() -> None:
        seen.append((broker.sample(), broker.present()))

    look()
    broker.publish("q", 3)
    broker.get("q")
    look()
    broker.purge("q")
    look()
    broker.delete("q")
    look()
    broker.declare("q", "other")
    broker.publish("q", 2)
    look()
    assert [depths.get("q") for _, depths in seen] == [(0, 0), (2, 1), (0, 1), None, (2, 0)]
    for moment_ms, depths in seen:
        assert broker.recorded(moment_ms) == depths
        assert broker.recorded(moment_ms + DEPTHS_INTERVAL_S * 1000 - 1) == depths


def test_a_moment_between_samples_names_the_sample(broker: RecordedBroker) -> None:
    moment_ms = broker.sample()
    broker.publish("q", 5)
    answer = broker.console.get(f"/queue-depths/%2F?at={moment_ms + 3000}")
    assert (answer["sampled_from_ms"], answer["sampled_to_ms"], answer["recording"]) == (moment_ms, moment_ms, True)
    assert [(each["name"], each["ready"]) for each in answer["queues"]] == [("q", 0)]


def test_nothing_is_known_before_the_first_sample_and_long_after_the_last(broker: RecordedBroker) -> None:
    assert broker.recorded(broker.now_ms) is None
    moment_ms = broker.sample()
    assert broker.recorded(moment_ms - 1) is None
    assert broker.recorded(moment_ms + LONGEST_MS) == {"q": (0, 0)}
    assert broker.recorded(moment_ms + LONGEST_MS + 1) is None


def test_a_redeclared_queue_has_another_incarnation(broker: RecordedBroker) -> None:
    first_ms = broker.sample()
    broker.delete("q")
    broker.declare("q")
    second_ms = broker.sample()
    first, second = (broker.console.get(f"/queue-depths/%2F?at={each}")["queues"] for each in (first_ms, second_ms))
    assert first[0]["incarnation"] < second[0]["incarnation"]


def test_a_queue_that_does_not_change_is_written_once(broker: RecordedBroker, tmp_path: Path) -> None:
    broker.declare(*(f"idle{number}" for number in range(1000)))
    broker.sample()
    broker.publish("q", 1)
    for _ in range(20):
        broker.sample()
    assert rows(tmp_path) == [1002]
    assert len(broker.recorded(broker.now_ms) or {}) == 1001


def test_names_may_have_any_characters(broker: RecordedBroker) -> None:
    names = ["a\0b", "a\0c", "ü😀", "'; --"]
    for name in names:
        broker.gateway.vhost.declare_queue(name)
    moment_ms = broker.sample()
    assert broker.recorded(moment_ms) == {"q": (0, 0), **dict.fromkeys(names, (0, 0))}
    broker.gateway.vhost.delete_queue(broker.gateway.vhost.queue_by_name["a\0b"])
    assert (broker.recorded(broker.sample()) or {}).keys() == {"q", *names} - {"a\0b"}


def test_samples_that_are_not_due_are_not_written(broker: RecordedBroker) -> None:
    moment_ms = broker.sample()
    broker.publish("q", 1)
    assert broker.recorded(broker.sample(5)) == {"q": (0, 0)}
    broker.publish("q", 1)
    assert broker.recorded(broker.sample(5)) == {"q": (2, 0)}
    assert broker.recorded(moment_ms + 5000) == {"q": (0, 0)}


def test_while_the_disk_is_slow_samples_are_left_out_and_no_change_is_lost(broker: RecordedBroker) -> None:
    broker.sample()
    broker.declare("b")
    broker.console.pool.is_slow = True
    slow_ms = broker.sample()
    broker.publish("q", 1)
    broker.delete("b")
    left_out_ms = broker.sample()
    broker.console.pool.work()
    assert broker.recorded(slow_ms) == broker.recorded(left_out_ms) == {"q": (0, 0), "b": (0, 0)}
    assert broker.recorded(broker.sample()) == {"q": (1, 0)}


def test_after_an_error_of_the_disk_a_new_file_has_everything(
    broker: RecordedBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first_ms = broker.sample()
    broker.declare("b")
    with sqlite3.connect(next(tmp_path.glob("*.sqlite"))) as other:
        other.execute("BEGIN EXCLUSIVE")  # so that the write times out
        broker.console.depth_files._file._connection.execute("PRAGMA busy_timeout = 0")  # type: ignore[union-attr]
        failed_ms = broker.sample()
        broker.sample()
    assert caplog.text.count("depths.failed") == 1
    broker.publish("q", 1)
    assert broker.recorded(broker.sample()) == {"q": (1, 0), "b": (0, 0)}
    assert broker.recorded(first_ms) == broker.recorded(failed_ms) == {"q": (0, 0)}


def test_a_sample_that_cannot_be_committed_is_not_read(broker: RecordedBroker, tmp_path: Path) -> None:
    broker.sample()
    broker.declare("b")
    reader = sqlite3.connect(next(tmp_path.glob("*.sqlite")))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM samples").fetchone() == (1,)  # a reader keeps a writer from its commit
    broker.console.depth_files._file._connection.execute("PRAGMA busy_timeout = 0")  # type: ignore[union-attr]
    failed_ms = broker.sample()
    assert broker.recorded(failed_ms) == {"q": (0, 0)}
    reader.close()
    assert broker.recorded(broker.sample()) == {"q": (0, 0), "b": (0, 0)}


def test_a_new_file_that_cannot_be_written_leaves_none(tmp_path: Path) -> None:
    blocked = tmp_path / "depths"
    blocked.write_text("a file instead of the directory")
    broker = RecordedBroker(blocked)
    broker.declare("q")
    broker.sample()
    blocked.unlink()
    assert broker.recorded(broker.sample()) == {"q": (0, 0)}
    assert len(rows(blocked)) == 1


def test_each_day_has_a_file_and_old_ones_are_removed(broker: RecordedBroker, tmp_path: Path) -> None:
    days = DEPTHS_AGE_MS // (DAY_S * 1000)
    moments = [broker.sample(DAY_S) for _ in range(days + 4)]
    assert len(rows(tmp_path)) == days + 2  # the oldest has samples that are not too old
    assert [broker.recorded(moment) is None for moment in moments] == [True] * 2 + [False] * (days + 2)


def test_the_oldest_files_are_removed_when_all_are_too_large(broker: RecordedBroker, tmp_path: Path) -> None:
    names = [f"q{number}" for number in range(400)]
    broker.declare(*names)
    depths, moments = broker.present(), [broker.sample()]
    record = broker.console.depths
    assert record is not None
    for number in range(250):
        for name in names:
            record.saw(Queued(name, number))
        broker.clock.advance(DEPTHS_INTERVAL_S)
        record.begin()
        record.end()
        moments.append(broker.now_ms)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2**20
    assert len(rows(tmp_path)) > 2
    assert broker.recorded(moments[0]) is None
    assert broker.recorded(moments[-20]) == depths | dict.fromkeys(names, (230, 0))


def test_a_reset_of_the_statistics_in_a_sample_loses_nothing(broker: RecordedBroker) -> None:
    broker.sample()
    broker.publish("q", 1)
    broker.clock.advance(DEPTHS_INTERVAL_S)
    steps: Iterator[None] = broker.console.statistics.sample()
    next(steps)
    broker.console.statistics.forget()
    assert list(steps) == []
    assert broker.recorded(broker.now_ms) == {"q": (0, 0)}
    assert broker.recorded(broker.sample()) == {"q": (1, 0)}


def test_a_clock_that_is_set_back_begins_a_new_file(broker: RecordedBroker, tmp_path: Path) -> None:
    before_ms = broker.sample(3600)
    broker.sample()
    broker.publish("q", 1)
    broker.clock.set_back(1800)
    after_ms = broker.sample()
    assert after_ms < before_ms
    assert broker.recorded(after_ms - 1) is None
    assert broker.recorded(after_ms) == {"q": (1, 0)}
    assert broker.recorded(before_ms) == {"q": (0, 0)}, "the samples of before are kept"
    broker.publish("q", 1)
    assert broker.recorded(broker.sample()) == {"q": (2, 0)}
    assert len(rows(tmp_path)) == 2


@pytest.mark.parametrize("back_s", [15, 600, 7200])
def test_after_the_clock_was_set_back_each_new_sample_is_known(broker: RecordedBroker, back_s: int) -> None:
    """Also those of the times that the file before has, and of later ones."""
    for _ in range(70):
        broker.sample()
    broker.clock.set_back(back_s)
    for _ in range(150):
        broker.publish("q", 1)
        assert broker.recorded(broker.sample()) == broker.present()


def test_a_file_of_a_time_to_come_does_not_remove_the_present_one(broker: RecordedBroker, tmp_path: Path) -> None:
    with (tmp_path / f"{broker.now_ms + 10**12}.sqlite").open("wb") as large:
        large.truncate(2**21)
    assert broker.recorded(broker.sample()) == {"q": (0, 0)}


# Restarts


def test_after_a_stop_nothing_is_known_until_the_next_start(broker: RecordedBroker, tmp_path: Path) -> None:
    broker.publish("q", 1)
    last_ms = broker.sample()
    broker.clock.advance(1)
    stopped_ms = broker.now_ms
    broker.console.depth_files.stop(stopped_ms)
    broker.clock.advance(1)
    again = RecordedBroker(tmp_path, broker.gateway.store, broker.clock)
    first_ms = again.sample()
    assert again.recorded(last_ms) == again.recorded(stopped_ms - 1) == {"q": (1, 0)}
    assert again.recorded(stopped_ms) is None
    assert again.recorded(first_ms - 1) is None
    assert again.recorded(first_ms) == again.present()


def test_after_a_kill_the_last_sample_answers_for_two_intervals(broker: RecordedBroker, tmp_path: Path) -> None:
    last_ms = broker.sample()
    broker.clock.advance(100)
    again = RecordedBroker(tmp_path, broker.gateway.store, broker.clock)
    first_ms = again.sample()
    assert again.recorded(last_ms + LONGEST_MS) == {"q": (0, 0)}
    assert again.recorded(last_ms + LONGEST_MS + 1) is again.recorded(first_ms - 1) is None
    assert again.recorded(first_ms) == {"q": (0, 0)}


def test_a_file_without_its_first_sample_does_not_hide_the_one_before(broker: RecordedBroker, tmp_path: Path) -> None:
    moment_ms = broker.sample()
    (tmp_path / f"{moment_ms + 1}.sqlite").touch()
    assert broker.recorded(moment_ms + 2) == {"q": (0, 0)}


# Against a model

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["declare", "publish", "get", "purge", "delete", "sample", "restart"]), st.sampled_from("abc")
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_samples_equal_the_queues_whatever_happens(steps: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as directory:
        broker = RecordedBroker(Path(directory))
        seen: dict[int, Depths] = {}
        for step, name in [*steps, ("sample", "")]:
            if step == "sample":
                seen[broker.sample()] = broker.present()
            elif step == "restart":
                broker = RecordedBroker(Path(directory), broker.gateway.store, broker.clock)
            elif step == "declare":
                broker.declare(name)
            elif name in broker.gateway.vhost.queue_by_name:
                broker.publish(name, 2) if step == "publish" else getattr(broker, step)(name)
        assert {moment: broker.recorded(moment) for moment in seen} == seen
