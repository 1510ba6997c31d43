"""The source as a stream: micro-batches within the limits.

No state here must survive: the position of a query is only in Spark's checkpoint.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from gateway_spark.bounds import EARLIEST
from gateway_spark.brokers import Brokers
from gateway_spark.client import Partition
from gateway_spark.offsets import Json, Key, PartitionOffset, Range, Reached, decode, encode, is_same, limited, ranges
from gateway_spark.one_line import one_line, one_line_each
from gateway_spark.options import ReadLimits, SourceOptions
from gateway_spark.planning import (
    Streams,
    offset_of,
    place,
    recreated,
    require_selected,
    still_there,
)
from gateway_spark.query_progress import QueryProgress
from gateway_spark.reading import Batch, loss_rule
from gateway_spark.tasks import messages, tasks


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver and reads them on executors, each of which has a copy.

    Its state may be lost: the target of a query that stops at the present end, the start of waiting for more
    messages, and the last reported progress.
    """

    def __init__(self, options: SourceOptions, schema: StructType, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._schema = schema
        self._clock = clock
        self._target: dict[Key, int] | None = None
        self._waits_since: float | None = None
        self._has_looked = False
        self._reports = QueryProgress(options.consumer)

    # Offsets

    @one_line
    def initialOffset(self) -> Json:  # noqa: N802 - Spark's name, as all below
        """Return the start of a new query; its first batch records the actual offsets."""
        return {}

    @one_line
    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit in the options; Spark passes it back to ``latestOffset``."""
        limits = self._options.limits
        if limits.max_rows is not None:
            return ReadMaxRows(limits.max_rows)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        return ReadAllAvailable() if limits.min_rows is None else ReadMinRows(limits.min_rows)

    @one_line
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the present end as the target."""
        with closing(self._brokers()) as brokers:
            self._target = {key: each.next for key, each in brokers.streams(self._options.selection).items()}

    @one_line
    def reportLatestOffset(self) -> Json:  # noqa: N802
        """Return the end of all partitions, which Spark shows beside the position of the query."""
        with closing(self._brokers()) as brokers:
            return encode(
                {
                    key: PartitionOffset(each.next, incarnation=each.incarnation)
                    for key, each in brokers.streams(self._options.selection).items()
                }
            )

    @one_line
    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802
        """Return the end of the next batch; ``start`` itself if there is nothing to read yet.

        :raises DataLoss: if the next messages are lost and that is an error.
        """
        reached = decode(start)
        with closing(self._brokers()) as brokers:
            streams = brokers.streams(self._options.selection)
            if not self._has_looked:
                brokers.require_clusters(self._options.selection, streams)
            begun = self._begun(reached, streams, brokers)
            self._has_looked = True
            self._reports.tell(reached, brokers)
            waiting = self._waiting(begun, streams)
            taken = self._taken(waiting, streams, self._limits(limit), brokers)
        return encode(begun | {each.key: _moved(each, begun[each.key], reached.get(each.key)) for each in taken})

    def _begun(self, reached: Reached, streams: Streams, brokers: Brokers) -> dict[Key, PartitionOffset]:
        """Return the offset to continue at in each partition: the query's, or a new start if that is lost."""
        if not reached:
            require_selected(self._options.start, "startingOffsets", streams)
        lost = loss_rule(self._options.fails_on_loss)
        begun = dict(reached)
        for key, entry in reached.items():
            name, partition = place(key), streams.get(key)
            if partition is None:
                lost(f"{name} is gone")
            elif not is_same(entry.incarnation, partition.incarnation):
                lost(f"{recreated(key)}, read up to {entry.next} before: messages may be lost")
                begun[key] = _start(partition, partition.first)
            elif entry.next < partition.first:
                lost(f"messages {entry.next} to {partition.first - 1} of {name} are gone")
                begun[key] = _start(partition, partition.first)
            elif entry.next > partition.next:
                lost(f"{name} ends at {partition.next}, before {entry.next}: it was recreated")
                begun[key] = _start(partition, partition.first)
            elif entry.incarnation is None and partition.incarnation is not None:
                begun[key] = _start(partition, entry.next)
        for key in streams.keys() - reached.keys():
            begun[key] = self._beginning(key, streams[key], brokers, is_new=bool(reached) or self._has_looked)
        return begun

    def _beginning(self, key: Key, partition: Partition, brokers: Brokers, *, is_new: bool) -> PartitionOffset:
        """Return the start of a new partition; one that was added later starts at its first message."""
        bound = EARLIEST if is_new else self._options.start
        offset = offset_of(bound, "startingOffsets", key, partition, brokers)
        if offset < partition.first:
            lost = loss_rule(self._options.fails_on_loss)
            lost(f"messages {offset} to {partition.first - 1} of {place(key)} are gone")
            offset = partition.first
        return _start(partition, offset)

    # Limits

    def _waiting(self, begun: Mapping[Key, PartitionOffset], streams: Streams) -> list[Range]:
        """Return the unread messages, up to the target of the query, if it has one."""
        ends = {key: each.next for key, each in streams.items()}
        if self._target is not None:
            ends = {key: min(end, self._target.get(key, 0)) for key, end in ends.items()}
        return [
            Range(key, begun[key].next, end, begun[key].incarnation)
            for key, end in ends.items()
            if begun[key].next < end
        ]

    def _limits(self, limit: ReadLimit) -> ReadLimits:
        """Return the limits of this batch: none of the options if Spark requests everything."""
        match limit:
            case ReadAllAvailable():
                return ReadLimits()
            case ReadMaxRows(most):
                return replace(self._options.limits, max_rows=most)
            case ReadMaxBytes(most):
                return replace(self._options.limits, max_bytes=most)
        return self._options.limits

    def _taken(self, waiting: list[Range], streams: Streams, limits: ReadLimits, brokers: Brokers) -> list[Range]:
        if limits.min_rows is not None and self._waits_for_more(waiting, limits):
            return []
        if limits.max_rows is not None:
            waiting = limited(waiting, limits.max_rows)
        if limits.max_bytes is not None:
            waiting = _limited_bytes(waiting, streams, limits.max_bytes, brokers)
        return waiting

    def _waits_for_more(self, waiting: list[Range], limits: ReadLimits) -> bool:
        """Return whether to wait for more messages, for a limited time; a query with a target does not wait."""
        if self._waits_since is None:
            self._waits_since = self._clock()
        is_enough = sum(each.size for each in waiting) >= (limits.min_rows or 0)
        if is_enough or self._target is not None or self._clock() - self._waits_since >= limits.max_delay_s:
            self._waits_since = None
            return False
        return True

    # Batches

    @one_line
    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the tasks of a batch. :raises DataLoss: as ``latestOffset`` does."""
        return tasks(*self._kept(start, end), self._options)

    def _kept(self, start: Json, end: Json) -> tuple[list[Range], Streams]:
        """Return the ranges of a batch that can be read, and their streams."""
        wanted = ranges(decode(start), decode(end))
        if not wanted:
            return [], {}
        with closing(self._brokers()) as brokers:
            streams = brokers.streams(self._options.selection)
        return still_there(wanted, streams, loss_rule(self._options.fails_on_loss)), streams

    @one_line_each
    def read(self, partition: InputPartition) -> Iterator[Batch]:
        """Yield the messages of a task as Arrow batches."""
        yield from messages(partition, self._options, self._schema)

    @one_line
    def commit(self, end: Json) -> None:
        """Report the position of the query to the broker. Called one batch late and never for the last;
        informational only.
        """
        at_once = {name: replace(address, retry_s=0) for name, address in self._options.brokers.items()}
        with closing(Brokers(at_once)) as brokers:
            self._reports.tell(decode(end), brokers)

    def _brokers(self) -> Brokers:
        return Brokers(self._options.brokers)


def _moved(taken: Range, begun: PartitionOffset, before: PartitionOffset | None) -> PartitionOffset:
    """Return the entry of a partition that has advanced, with its start unless the previous entry has it."""
    return PartitionOffset(taken.end, None if begun == before else begun.since, begun.incarnation)


def _start(partition: Partition, offset: int) -> PartitionOffset:
    """Return the entry of a partition that is read from an offset on."""
    return PartitionOffset(offset, offset, partition.incarnation)


def _limited_bytes(waiting: list[Range], streams: Streams, most: int, brokers: Brokers) -> list[Range]:
    """Take about ``most`` bytes of the waiting messages, a share from each partition, at least one message each."""
    estimates = [estimate(each, streams[each.key]) for each in waiting]
    taken = []
    for each, estimated in zip(waiting, estimates, strict=True):
        share = max(1, most * estimated // max(1, sum(estimates)))
        end = brokers.offset_after(streams[each.key], each.begin, share)
        taken.append(each._replace(end=max(each.begin + 1, min(each.end, end))))
    return taken


def estimate(waiting: Range, partition: Partition) -> int:
    """Return the approximate number of waiting bytes."""
    return waiting.size * partition.size_bytes // max(1, partition.next - partition.first)
