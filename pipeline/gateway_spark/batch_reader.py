"""The source as a table: all messages between two bounds, planned once."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from gateway_spark.brokers import Brokers
from gateway_spark.narrowing import Narrowing
from gateway_spark.offsets import Key, Range
from gateway_spark.one_line import one_line, one_line_each
from gateway_spark.options import SourceOptions
from gateway_spark.planning import Streams, offset_of, require_selected, still_there
from gateway_spark.reading import Batch, loss_rule
from gateway_spark.tasks import messages, tasks

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class BatchReader(DataSourceReader):
    """Reads streams once. It is sent to the executors, so it contains only its arguments."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._narrowing = Narrowing()

    @one_line
    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks. :raises PipelineError: if the streams cannot be read as requested."""
        options = self._options
        with closing(Brokers(options.brokers)) as brokers:
            streams = brokers.streams(options.selection)
            brokers.require_clusters(options.selection, streams)
            require_selected(options.start, "startingOffsets", streams)
            require_selected(options.end, "endingOffsets", streams)
            wanted = [self._range(key, streams, brokers) for key in streams if self._narrowing.allows(key)]
            kept = still_there((each for each in wanted if each.size > 0), streams, loss_rule(options.fails_on_loss))
            return list(tasks(kept, streams, options))

    def _range(self, key: Key, streams: Streams, brokers: Brokers) -> Range:
        """Return the range to read of a partition; messages excluded by filters are neither read nor reported as
        lost.
        """
        partition, narrowing = streams[key], self._narrowing
        begin = offset_of(self._options.start, "startingOffsets", key, partition, brokers)
        end = offset_of(self._options.end, "endingOffsets", key, partition, brokers)
        times = narrowing.times_ms
        if times.begin is not None:
            begin = max(begin, brokers.offset_at(partition, max(times.begin, 0)))
        if times.end is not None:
            end = min(end, brokers.offset_at(partition, max(times.end, 0)))
        begin = max(begin, narrowing.offsets.begin or 0)
        if narrowing.offsets.end is not None:
            end = min(end, narrowing.offsets.end)
        return Range(key, begin, end, partition.incarnation)

    @one_line_each
    def read(self, partition: InputPartition) -> Iterator[Batch]:
        """Yield the messages of a task as Arrow batches."""
        yield from messages(partition, self._options, self._schema)


class FilteringReader(BatchReader):
    """The same, with filters applied by the broker as far as possible.

    A separate class, because Spark refuses to read from a class with ``pushFilters`` unless its setting allows
    pushing.
    """

    @one_line
    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":  # noqa: N802 - Spark's name
        """Narrow the read by the filters; Spark applies all of them again."""
        from gateway_spark.pushdown import narrowed  # imports what Spark 4.0 does not have

        self._narrowing = narrowed(filters)
        return filters
