"""The source as a stream for Spark 4.0 and 4.1, which do not tell a reader its position: a batch has all new messages.

Only ``partitions`` gets the position, from Spark's checkpoint. So the end of each batch has all that its messages
depend on, as ``{"origin": 20, "first": 5, "next": 500}``: the start of the query, for its first batch, and the first
message of the stream, for a partition that was added later. A repeated batch reads the same messages, whatever
happened to the stream meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from gateway_spark.brokers import Brokers
from gateway_spark.client import Partition
from gateway_spark.errors import OptionError
from gateway_spark.offsets import Json, Key, PartitionOffset, Range, decode, encode, is_same, origin
from gateway_spark.one_line import one_line, one_line_each
from gateway_spark.options import SourceOptions
from gateway_spark.planning import Streams, offset_of, place, recreated, require_selected, still_there
from gateway_spark.query_progress import QueryProgress
from gateway_spark.reading import Batch, Lost, loss_rule
from gateway_spark.tasks import messages, tasks

#: The next message in the start of a query, where nothing was read yet.
START: Final = -1


class UnlimitedReader(DataSourceStreamReader):
    """Plans batches on the driver and reads them on executors, each of which has a copy.

    ``_starts`` has the start of each partition, for the first batch that has it. ``_refusal`` says why the options give
    none: an error if the query is new, without effect on one that goes on.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._has_looked = False
        self._starts: dict[Key, PartitionOffset] = {}
        self._refusal: OptionError | None = None
        self._reports = QueryProgress(options.consumer)

    @one_line
    def initialOffset(self) -> Json:  # noqa: N802 - Spark's name, as all below
        """Return the start of a new query; Spark asks for it until the first batch is complete."""
        return self._positions(lambda partition: START)

    @one_line
    def latestOffset(self) -> Json:  # type: ignore[override]  # noqa: N802 - without the arguments of Spark 4.2
        """Return the end of all partitions, with the start of a query that begins with this batch."""
        return self._positions(lambda partition: partition.next)

    def _positions(self, next_of: Callable[[Partition], int]) -> Json:
        """Return a position in each partition, with its incarnation and its start."""
        with closing(Brokers(self._options.brokers)) as brokers:
            streams = brokers.streams(self._options.selection)
            self._begin(streams, brokers)
        return encode(
            {
                key: self._starts[key]._replace(next=next_of(each), incarnation=each.incarnation)
                for key, each in streams.items()
            }
        )

    def _begin(self, streams: Streams, brokers: Brokers) -> None:
        """Choose the start of each partition, the first time: the options', or the first message if it was added later.

        Spark does not say whether the query is new. Of one that goes on, the start has no effect. It stays the same
        while the stream does, because Spark runs a batch, even an empty one, when an end has changed.
        """
        is_first = not self._has_looked
        if is_first:
            brokers.require_clusters(self._options.selection, streams)
            self._refusal = self._refused_selection(streams)
        for key, each in streams.items():
            if not _is_of(self._starts.get(key), each):
                start = self._origin(key, each, brokers) if is_first else each.first
                self._starts[key] = PartitionOffset(START, None, each.incarnation, start, each.first)
        self._has_looked = True

    def _refused_selection(self, streams: Streams) -> OptionError | None:
        try:
            require_selected(self._options.start, "startingOffsets", streams)
        except OptionError as refusal:
            return refusal
        return None

    def _origin(self, key: Key, partition: Partition, brokers: Brokers) -> int | None:
        """Return the start by the options; ``None`` after one was refused, so that no new query begins."""
        if self._refusal is None:
            try:
                return max(partition.first, offset_of(self._options.start, "startingOffsets", key, partition, brokers))
            except OptionError as refusal:
                self._refusal = refusal
        return None

    @one_line
    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the tasks of a batch.

        :raises DataLoss: if messages of it are lost and that is an error.
        :raises OptionError: if the options give a new query no start.
        """
        before, after = decode(start), decode(end)
        with closing(Brokers(self._options.brokers)) as brokers:
            streams = brokers.streams(self._options.selection)
        self._keep(after)
        if not after and not before:
            self._require_start()
        lost = loss_rule(self._options.fails_on_loss)
        for key in before.keys() - after.keys():
            if before[key].next != START:  # otherwise it was added after the first batch was planned
                lost(f"{place(key)} is gone")
        moved = {key: entry for key, entry in after.items() if entry != before.get(key)}
        wanted = [self._range(key, before.get(key), entry, lost) for key, entry in moved.items()]
        return list(
            tasks(still_there((each for each in wanted if each.size > 0), streams, lost), streams, self._options)
        )

    def _keep(self, after: Mapping[Key, PartitionOffset]) -> None:
        """Keep the starts of a planned batch, so that later ends do not change for nothing."""
        self._starts |= {key: entry._replace(next=START) for key, entry in after.items() if entry.first is not None}

    def _range(self, key: Key, before: PartitionOffset | None, after: PartitionOffset, lost: Lost) -> Range:
        """Return the messages of a batch in one partition: by the checkpoint alone, so always the same ones."""
        first = after.first or 0
        if after.since is not None:  # planned by a newer version of Spark
            begin = after.since
        elif before is None:  # a partition that was added later
            begin = first
        elif before.next == START:  # the first batch, perhaps repeated with another start
            begin = self._begun(after)
        elif not is_same(before.incarnation, after.incarnation):
            lost(f"{recreated(key)}, read up to {before.next} before: messages may be lost")
            begin = first
        elif before.next > after.next:
            lost(f"{place(key)} ends at {after.next}, before {before.next}: it was recreated")
            begin = first
        else:
            begin = before.next
        return Range(key, begin, after.next, after.incarnation)

    def _begun(self, after: PartitionOffset) -> int:
        """Return the start of the query. :raises OptionError: if the options give none."""
        if after.origin is None:
            self._require_start()
        return origin(after)

    def _require_start(self) -> None:
        """Refuse a new query to which the options give no start; its checkpoint has the end of the first batch already.

        :raises OptionError: with the reason.
        """
        if self._refusal is not None:
            raise OptionError(f"{self._refusal}; nothing is read yet, so delete the checkpoint before the next start")

    @one_line_each
    def read(self, partition: InputPartition) -> Iterator[Batch]:
        """Yield the messages of a task as Arrow batches."""
        yield from messages(partition, self._options, self._schema)

    @one_line
    def commit(self, end: Json) -> None:
        """Report the position of the query to the broker; informational only."""
        at_once = {name: replace(address, retry_s=0) for name, address in self._options.brokers.items()}
        with closing(Brokers(at_once)) as brokers:
            self._reports.tell(decode(end), brokers)


def _is_of(start: PartitionOffset | None, partition: Partition) -> bool:
    """Return whether a start is that of this stream, and not of an earlier one of the same name."""
    return (
        start is not None
        and is_same(start.incarnation, partition.incarnation)
        and (start.first or 0) <= partition.first
    )
