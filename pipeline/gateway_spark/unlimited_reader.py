"""The source as a stream for Spark 4.0 and 4.1, which do not tell a reader its position: a batch has all new messages.

Only ``partitions`` gets the position, from Spark's checkpoint. So the end of each batch has the start of the query,
as ``{"origin": 20, "next": 500}``: a repeated first batch reads the same messages, whatever happened to the stream
meanwhile.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from gateway_spark.bounds import EARLIEST
from gateway_spark.brokers import Brokers
from gateway_spark.client import Partition
from gateway_spark.offsets import Json, Key, PartitionOffset, Range, decode, encode, is_same
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

    ``_origins`` has the start in each partition, for the first batch of a query.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._origins: dict[Key, int] = {}
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
        """Return a position in each partition, with its incarnation and the start of the query."""
        with closing(Brokers(self._options.brokers)) as brokers:
            streams = brokers.streams(self._options.selection)
            self._begin(streams, brokers)
        return encode(
            {
                key: PartitionOffset(next_of(each), incarnation=each.incarnation, origin=self._origins[key])
                for key, each in streams.items()
            }
        )

    def _begin(self, streams: Streams, brokers: Brokers) -> None:
        """Choose the start of each partition, the first time: the options', or the first message if it was added later.

        Spark does not say whether the query is new. Of one that goes on, the start has no effect.
        """
        is_first = not self._origins
        if is_first:
            brokers.require_clusters(self._options.selection, streams)
            require_selected(self._options.start, "startingOffsets", streams)
        for key in streams.keys() - self._origins.keys():
            bound = self._options.start if is_first else EARLIEST
            offset = offset_of(bound, "startingOffsets", key, streams[key], brokers)
            self._origins[key] = max(streams[key].first, offset)

    @one_line
    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the tasks of a batch. :raises DataLoss: if messages of it are lost and that is an error."""
        before, after = decode(start), decode(end)
        self._origins |= {key: entry.origin for key, entry in after.items() if entry.origin is not None}
        with closing(Brokers(self._options.brokers)) as brokers:
            streams = brokers.streams(self._options.selection)
        lost = loss_rule(self._options.fails_on_loss)
        for key in before.keys() - after.keys():
            lost(f"{place(key)} is gone")
        wanted = [_range(key, before.get(key), entry, streams, lost) for key, entry in after.items()]
        return list(
            tasks(still_there((each for each in wanted if each.size > 0), streams, lost), streams, self._options)
        )

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


def _range(key: Key, before: PartitionOffset | None, after: PartitionOffset, streams: Streams, lost: Lost) -> Range:
    """Return the messages of a batch in one partition."""
    first = streams[key].first if key in streams else after.next
    origin = first if after.origin is None else after.origin
    if after.since is not None:  # planned by a newer version of Spark
        begin = after.since
    elif before is None:  # a partition that was added later
        begin = min(first, origin)
    elif before.next == START:  # the first batch, perhaps repeated with another start
        begin = origin
    elif not is_same(before.incarnation, after.incarnation):
        lost(f"{recreated(key)}, read up to {before.next} before: messages may be lost")
        begin = first
    elif before.next > after.next:
        lost(f"{place(key)} ends at {after.next}, before {before.next}: it was recreated")
        begin = first
    else:
        begin = before.next
    return Range(key, begin, after.next, after.incarnation)
