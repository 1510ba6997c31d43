"""With Spark 4.0 and 4.1, too, every message is in exactly one batch: they do not tell a reader its position."""

import json
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from pyspark.sql.streaming.datasource import ReadAllAvailable

from gateway_spark.errors import DataLoss, OptionError
from gateway_spark.options import ReadLimits, SourceOptions, source_options
from gateway_spark.schema import MESSAGE_SCHEMA
from gateway_spark.spark_versions import arrow_schema, require_supported
from gateway_spark.stream_reader import StreamReader
from gateway_spark.unlimited_reader import UnlimitedReader
from tests.pipeline.fake_broker import FakeBroker, fake_broker

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
            again = self.rows[self.complete :]
            assert not again or sorted(again[0]) == sorted(rows), "a repeated batch has other messages"
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


class Runs(RuleBasedStateMachine):
    """Runs of a query on a super stream that grows, is truncated and gets further partitions in between.

    ``begins`` has the first message to read in each stream. After an error for lost messages they come back, so that
    the query can continue.
    """

    def __init__(self) -> None:
        super().__init__()
        self._closing = ExitStack()
        self.broker = self._closing.enter_context(fake_broker())
        self.bounds = [(5, 10)]
        self.firsts = [5]
        self.begins: dict[str, int] = {}

    def teardown(self) -> None:
        self._closing.close()

    @initialize(start=st.sampled_from(["earliest", "latest"]))
    def begin(self, start: str) -> None:
        self.declare()
        self.engine = Engine(self.broker, queue="sales", startingOffsets=start)
        self.begins["sales-0"] = 5 if start == "earliest" else 10
        self.run(1, crashes=True)

    @rule(partition=st.sampled_from([0, -1]), count=st.integers(1, 7))
    def publish(self, partition: int, count: int) -> None:
        first, end = self.bounds[partition]
        self.bounds[partition] = (first, end + count)
        self.declare()

    @rule(partition=st.sampled_from([0, -1]), count=st.integers(1, 7))
    def truncate(self, partition: int, count: int) -> None:
        first, end = self.bounds[partition]
        self.bounds[partition] = (min(first + count, end), end)
        self.declare()

    @precondition(lambda self: len(self.bounds) < 4)
    @rule(first=st.integers(0, 5), count=st.integers(0, 9))
    def add_partition(self, first: int, count: int) -> None:
        self.bounds.append((first, first + count))
        self.firsts.append(first)
        self.declare()

    def declare(self) -> None:
        self.broker.declare_super("sales", *self.bounds)

    @rule(batches=st.integers(1, 2), crashes=st.booleans(), asks_early=st.booleans(), is_newer=st.booleans())
    def run(self, batches: int, crashes: bool, asks_early: bool = False, is_newer: bool = False) -> None:
        known, error = len(self.engine.planned), None
        try:
            self.engine.run(batches, crashes=crashes, asks_early=asks_early, is_newer=is_newer)
        except DataLoss as loss:
            error = loss
        for end in self.engine.planned[known:]:
            for number in end["sales"]:
                self.begins.setdefault(f"sales-{number}", self.bounds[int(number)][0])
        read = self.read()
        for name, begin in self.begins.items():
            assert read[name] == list(range(begin, begin + len(read[name])))
        if error is not None:
            assert any(self.bounds[int(name[-1])][0] > begin + len(read[name]) for name, begin in self.begins.items())
            self.bounds = [(first, end) for first, (_, end) in zip(self.firsts, self.bounds, strict=True)]
            self.declare()

    @rule(is_newer=st.booleans())
    def run_to_the_end(self, is_newer: bool) -> None:
        for _ in range(4):
            self.run(1, crashes=False, is_newer=is_newer)
        ends = {f"sales-{number}": end for number, (_, end) in enumerate(self.bounds)}
        assert {name: begin + len(self.read()[name]) for name, begin in self.begins.items()} == ends

    def read(self) -> dict[str, list[int]]:
        """Return the messages of complete batches by stream."""
        rows = [row for batch in self.engine.rows[: self.engine.complete] for row in batch]
        return {name: [offset for stream, offset in rows if stream == name] for name in self.begins}


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)


def test_a_repeated_batch_of_an_added_partition_is_the_same_batch(broker: FakeBroker) -> None:
    """Retention deletes some of its messages before the batch is repeated."""
    broker.declare_super("sales", (0, 3))
    engine = Engine(broker, queue="sales", startingOffsets="latest")
    engine.run()
    broker.declare_super("sales", (0, 3), (0, 50))
    engine.run(crashes=True)
    broker.declare_super("sales", (0, 3), (20, 50))
    with pytest.raises(DataLoss, match="messages 0 to 19 of queue 'sales', partition 1 are gone"):
        engine.run()
    broker.declare_super("sales", (0, 3), (0, 50))
    engine.run()
    assert engine.rows[1] == [("sales-1", offset) for offset in range(50)]


def test_a_partition_that_is_added_before_the_first_batch_is_repeated_is_no_loss(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 3))
    engine = Engine(broker, queue="sales", startingOffsets="earliest")
    engine.run(crashes=True)
    broker.declare_super("sales", (0, 3), (0, 2))
    engine.run(2)
    assert engine.rows == [[("sales-0", offset) for offset in range(3)], [("sales-1", 0), ("sales-1", 1)]]


def test_a_batch_that_a_newer_version_planned_has_no_messages_of_unchanged_partitions(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 3))
    engine = Engine(broker, queue="sales", startingOffsets="earliest")
    engine.run(is_newer=True)
    broker.declare_super("sales", (0, 3), (0, 2))
    engine.run(crashes=True, is_newer=True)
    engine.run()
    assert engine.rows[1] == [("sales-1", 0), ("sales-1", 1)]


def test_a_stream_that_is_recreated_before_the_first_batch_is_planned_is_read_from_its_beginning(
    broker: FakeBroker,
) -> None:
    broker.recreate("orders", 5, 105, "1-1")
    options = source_options(broker.options(queue="orders", startingOffsets="latest"), is_stream=True)
    reader = UnlimitedReader(options, MESSAGE_SCHEMA)
    start = kept(reader.initialOffset())
    broker.recreate("orders", 2, 300, "2-2")
    [task] = reader.partitions(start, kept(reader.latestOffset()))
    assert (task.begin, task.end) == (2, 300)


def test_an_end_stays_the_same_without_new_messages(broker: FakeBroker) -> None:
    """Spark runs a batch for each end that differs from the previous one."""
    options = source_options(broker.options(queue="orders", startingOffsets="earliest"), is_stream=True)
    reader = UnlimitedReader(options, MESSAGE_SCHEMA)
    start, end = kept(reader.initialOffset()), kept(reader.latestOffset())
    broker.declare("orders", 50, 105)
    assert kept(reader.latestOffset()) == end
    broker.declare("orders", 5, 105)
    repeated = UnlimitedReader(options, MESSAGE_SCHEMA)
    repeated.partitions(start, end)
    broker.declare("orders", 50, 105)
    assert kept(repeated.latestOffset()) == end


# The options of a new query, which have no effect on one that continues


def test_a_query_continues_after_a_super_stream_has_grown(broker: FakeBroker) -> None:
    """The offsets of the options name no offset of the new partition."""
    broker.declare_super("sales", (0, 3))
    engine = Engine(broker, queue="sales", startingOffsets='{"sales": {"0": 1}}')
    engine.run()
    broker.declare_super("sales", (0, 4), (2, 4))
    engine.run(crashes=True)
    broker.declare_super("sales", (0, 5), (2, 5), (0, 1))
    engine.run(2)
    assert engine.rows == [
        [("sales-0", 1), ("sales-0", 2)],
        [("sales-0", 3), ("sales-1", 2), ("sales-1", 3)],
        [("sales-0", 4), ("sales-1", 4), ("sales-2", 0)],
    ]


def test_a_query_continues_on_a_stream_that_replaces_the_one_of_its_options(broker: FakeBroker) -> None:
    broker.recreate("orders", 0, 100, "1-1")
    start = '{"orders": {"0": {"incarnation": "1-1", "next": 90}}}'
    engine = Engine(broker, startingOffsets=start, failOnDataLoss="false")
    engine.run()
    broker.recreate("orders", 3, 20, "2-2")
    with pytest.warns(UserWarning, match="declared again"):
        engine.run()
    assert engine.offsets == [*range(90, 100), *range(3, 20)]


REFUSED = [
    ('{"sales": {"0": 1}}', "option 'startingOffsets' names no offset of queue 'sales', partition 1"),
    ('{"sales": {"0": 1, "1": 7}}', "partition 1 ends at 4, before 7"),
    ('{"sales": {"0": 1, "1": 2, "2": 0}}', "names queue 'sales', partition 2, which is not selected"),
]


@pytest.mark.parametrize(("start", "error"), REFUSED)
@pytest.mark.parametrize("is_newer", [False, True])
def test_a_new_query_with_refused_options_reads_nothing(
    broker: FakeBroker, start: str, error: str, is_newer: bool
) -> None:
    """Its checkpoint has the end of the first batch, without a start: it is of no use with other options either."""
    broker.declare_super("sales", (0, 3), (2, 4))
    engine = Engine(broker, queue="sales", startingOffsets=start)
    for _ in range(2):
        with pytest.raises(OptionError, match=f"{error}.*; nothing is read yet, so delete the checkpoint"):
            engine.run()
    engine.options["startingOffsets"] = "earliest"
    with pytest.raises(OptionError, match="the first batch was planned with refused options: nothing is read yet"):
        engine.run(is_newer=is_newer)
    assert not engine.rows


def test_a_new_query_without_streams_with_refused_options_is_refused(broker: FakeBroker) -> None:
    given = {"queuePattern": "s.*", "startingOffsets": '{"sales": {"0": 1}}'}
    reader = UnlimitedReader(source_options(broker.options(**given), is_stream=True), MESSAGE_SCHEMA)
    start, end = kept(reader.initialOffset()), kept(reader.latestOffset())
    with pytest.raises(OptionError, match="names queue 'sales', partition 0, which is not selected"):
        reader.partitions(start, end)


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
