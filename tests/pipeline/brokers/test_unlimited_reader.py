"""With Spark 4.0 and 4.1, too, every message is in exactly one batch: they do not tell a reader its position."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable

from gateway_spark.errors import DataLoss, OptionError
from gateway_spark.options import ReadLimits, SourceOptions, source_options
from gateway_spark.schema import MESSAGE_SCHEMA
from gateway_spark.spark_versions import arrow_schema, require_supported
from gateway_spark.stream_reader import StreamReader
from gateway_spark.unlimited_reader import UnlimitedReader
from tests.pipeline.fake_broker import FakeBroker

Offset = dict[str, Any]


class Engine:
    """Spark 4.0's order of calls, with a checkpoint: the planned end of each batch, and the complete ones.

    Each run is a process with a reader of its own. ``asks_early`` is that of ``availableNow``, which asks for the end
    before anything else.
    """

    def __init__(self, broker: FakeBroker, **options: str) -> None:
        self.broker = broker
        self.options = options
        self.planned: list[Offset] = []
        self.complete = 0
        self.rows: list[list[tuple[str, int]]] = []

    def run(self, batches: int = 1, *, crashes: bool = False, asks_early: bool = False, is_newer: bool = False) -> None:
        """Run some batches; with ``crashes`` the last one is planned and read, and not completed.

        ``is_newer``: with Spark 4.2, which tells the reader its position.
        """
        given = self.broker.options(**({"queue": "orders"} | self.options))
        options = source_options(given, is_stream=True)
        reader = OfNewer(options) if is_newer else UnlimitedReader(options, MESSAGE_SCHEMA)
        early = latest(reader, {}) if asks_early and not is_newer else None
        for number in range(batches):
            if len(self.planned) == self.complete:
                start = self.planned[-1] if self.planned else kept(reader.initialOffset())
                end = kept(early if early is not None else latest(reader, start))
                if start == end and self.planned:
                    return
                self.planned.append(end)
            else:
                start = self.planned[-2] if self.complete else kept(reader.initialOffset())
            rows = [
                (task.stream, offset)
                for task in reader.partitions(start, self.planned[-1])
                for batch in reader.read(task)
                for offset in batch["offset"].to_pylist()
            ]
            self.rows[self.complete :] = [rows]
            if not (crashes and number == batches - 1):
                self.complete += 1

    @property
    def offsets(self) -> list[int]:
        return [offset for rows in self.rows[: self.complete] for _, offset in rows]


class OfNewer(StreamReader):
    """The reader for newer versions."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options, MESSAGE_SCHEMA)


def latest(reader: UnlimitedReader | OfNewer, start: Offset) -> Offset:
    """Return the end that a reader chooses for the next batch."""
    if isinstance(reader, StreamReader):
        return reader.latestOffset(start, ReadAllAvailable())
    return reader.latestOffset()


def kept(offset: Offset) -> Offset:
    return json.loads(json.dumps(offset))  # type: ignore[no-any-return]  # JSON


@pytest.mark.parametrize("asks_early", [False, True])
@pytest.mark.parametrize(("start", "first"), [("earliest", 5), ("latest", 105), ('{"orders":{"0":42}}', 42)])
def test_a_repeated_first_batch_is_the_same_batch(broker: FakeBroker, start: str, first: int, asks_early: bool) -> None:
    """The driver dies before the first batch is complete; meanwhile messages are published."""
    engine = Engine(broker, startingOffsets=start)
    engine.run(crashes=True, asks_early=asks_early)
    broker.declare("orders", 5, 150)
    engine.run(2, asks_early=asks_early)
    engine.run(asks_early=asks_early)
    assert engine.offsets == list(range(first, 150))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from(["earliest", "latest"]),
    runs=st.lists(
        st.tuples(st.integers(1, 3), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 7)),
        min_size=1,
        max_size=6,
    ),
)
def test_each_message_is_in_one_batch(
    broker: FakeBroker, start: str, runs: list[tuple[int, bool, bool, bool, int]]
) -> None:
    """Also if the version of Spark changes while a batch is incomplete."""
    broker.declare("orders", 5, 10)
    engine, end = Engine(broker, startingOffsets=start), 10
    for batches, crashes, asks_early, is_newer, more in runs:
        engine.run(batches, crashes=crashes, asks_early=asks_early, is_newer=is_newer)
        end += more
        broker.declare("orders", 5, end)
    engine.run(2)
    engine.run()
    assert engine.offsets == list(range(5 if start == "earliest" else 10, end))


def test_a_partition_that_is_added_later_is_read_from_its_first_message(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 3))
    engine = Engine(broker, queue="sales", startingOffsets="latest")
    engine.run()
    broker.declare_super("sales", (0, 4), (0, 2))
    engine.run()
    assert engine.rows == [[], [("sales-0", 3), ("sales-1", 0), ("sales-1", 1)]]


@pytest.mark.parametrize("is_newer", [False, True])
def test_a_batch_that_an_older_version_planned_after_a_loss_is_not_read_at_old_offsets(
    broker: FakeBroker, is_newer: bool
) -> None:
    broker.recreate("orders", 0, 100, "1-1")
    engine = Engine(broker, startingOffsets="earliest", failOnDataLoss="false")
    engine.run()
    broker.recreate("orders", 0, 300, "2-2")
    with pytest.warns(UserWarning, match="declared again"):
        engine.run(crashes=True)
    if is_newer:
        engine.run(is_newer=True)
    else:
        with pytest.warns(UserWarning, match="declared again"):
            engine.run()
    assert engine.rows[1] == [("orders", offset) for offset in range(300)]


def truncated(broker: FakeBroker) -> None:
    broker.recreate("orders", 110, 120, "1-1")


def recreated(broker: FakeBroker) -> None:
    broker.recreate("orders", 0, 500, "2-2")


LOSSES = [
    (truncated, "messages 105 to 109 of queue 'orders', partition 0 are gone", [*range(110, 120)]),
    (recreated, "queue 'orders', partition 0 was deleted and declared again", [*range(500)]),
]


@pytest.mark.parametrize(("lose", "error", "left"), LOSSES, ids=["truncated", "recreated"])
def test_a_loss_is_reported(broker: FakeBroker, lose: Any, error: str, left: list[int]) -> None:
    broker.recreate("orders", 5, 105, "1-1")
    engine = Engine(broker, startingOffsets="earliest")
    engine.run()
    lose(broker)
    with pytest.raises(DataLoss, match=error):
        engine.run()
    engine.options["failOnDataLoss"] = "false"
    with pytest.warns(UserWarning, match=error):
        engine.run()
    assert engine.offsets[100:] == left


def test_a_stream_that_was_deleted_is_a_loss(broker: FakeBroker) -> None:
    given = broker.options(queuePattern="o.*", startingOffsets="earliest")
    reader = UnlimitedReader(source_options(given, is_stream=True), MESSAGE_SCHEMA)
    start = kept(reader.latestOffset())
    broker.reset()
    with pytest.raises(DataLoss, match="queue 'orders', partition 0 is gone"):
        reader.partitions(start, kept(reader.latestOffset()))


def test_the_progress_is_shown(broker: FakeBroker) -> None:
    options = source_options(broker.options(queue="orders"), is_stream=True)
    reader = UnlimitedReader(options, MESSAGE_SCHEMA)
    reader.commit(kept(reader.latestOffset()))
    assert broker.progress == {"spark orders": {"offsets": {"orders": {"0": 105}}}}


# Versions


def test_this_version_supports_everything(broker: FakeBroker) -> None:
    given = broker.options(queue="orders", maxOffsetsPerTrigger="5")
    require_supported(source_options(given, is_stream=True), is_stream=True)
    require_supported(source_options(broker.options(queue="orders", pushdown="true"), is_stream=False), is_stream=False)
    assert arrow_schema(MESSAGE_SCHEMA).names == MESSAGE_SCHEMA.names


def test_an_older_version_refuses_limits(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway_spark.spark_versions.HAS_LIMITS", False)
    options = source_options(broker.options(queue="orders", maxBytesPerTrigger="5"), is_stream=True)
    assert options.limits == ReadLimits(max_bytes=5)
    with pytest.raises(OptionError, match=r"need Spark 4\.2 or newer, this is"):
        require_supported(options, is_stream=True)


def test_an_older_version_refuses_filters(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway_spark.spark_versions.HAS_FILTERS", False)
    options = source_options(broker.options(queue="orders", pushdown="true"), is_stream=False)
    with pytest.raises(OptionError, match=r"option 'pushdown' needs Spark 4\.1 or newer, this is"):
        require_supported(options, is_stream=False)
