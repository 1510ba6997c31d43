"""Small micro-batches: the driver reads their rows while it plans, and sends them with the plan.

A task then has its rows from Spark, without a worker of Python and without a connection to the broker. Spark keeps
the rows until the next batch. A task that does not find them, as after the loss of an executor, reads the same
offsets from the broker.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper

from gateway_spark.offsets import Json, Range
from gateway_spark.one_line import one_line, one_line_each
from gateway_spark.planning import Streams
from gateway_spark.reading import Batch
from gateway_spark.stream_reader import StreamReader, estimate
from gateway_spark.tasks import Task, messages, tasks

#: Most bytes of the rows of a small batch, which the driver has in memory.
MAX_BYTES: Final = 2**20


@dataclass
class SmallBatch(InputPartition):
    """All tasks of a small batch as one."""

    tasks: Sequence[Task]


class SmallBatchReader(StreamReader):
    """A stream reader that sends the rows of small batches with their plan."""

    _rows_to_send: Sequence[Batch] = ()

    @one_line
    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the tasks of a batch, or one that stands for all of them if the rows follow.

        :raises DataLoss: if messages of it are lost and that is an error.
        """
        kept, streams = self._kept(start, end)
        planned = tasks(kept, streams, self._options)
        rows = self._read_all(planned) if self._is_small(kept, streams) else None
        if rows is None:
            return planned
        self._rows_to_send = rows
        self.__class__ = _SendingReader
        return [SmallBatch(planned)]

    @one_line_each
    def read(self, partition: InputPartition) -> Iterator[Batch]:
        """Yield the messages of a task, or of all tasks of a small batch, as Arrow batches."""
        for task in partition.tasks if isinstance(partition, SmallBatch) else (partition,):
            yield from messages(task, self._options, self._schema)

    def _is_small(self, kept: Sequence[Range], streams: Streams) -> bool:
        """Return whether a batch is small by the mean sizes of its streams' messages.

        None is with metadata of columns, which a table has: Spark refuses rows of a plan because Arrow lacks them.
        """
        if (self._options.min_partitions or 1) > 1 or any(field.metadata for field in self._schema):
            return False
        rows = sum(each.size for each in kept)
        size = sum(estimate(each, streams[each.key]) for each in kept)
        return 0 < rows <= self._options.small_batch and size <= MAX_BYTES

    def _read_all(self, planned: Sequence[Task]) -> list[Batch] | None:
        """Return the rows of a batch; ``None`` as soon as they are more bytes than those of a small one."""
        rows: list[Batch] = []
        size = 0
        for task in planned:
            with closing(messages(task, self._options, self._schema)) as found:
                for batch in found:
                    size += batch.nbytes
                    if size > MAX_BYTES:
                        return None
                    rows.append(batch)
        return rows


class _SendingReader(SmallBatchReader, _SimpleStreamReaderWrapper):
    """A reader between the plan of a small batch and its rows.

    Spark asks only a reader of its private class for rows. It does not ask one for the latest offset, which it shows
    in the progress, so a reader is one only for this moment.
    """

    def getCache(self: SmallBatchReader, start: Json, end: Json) -> Iterator[Batch]:  # noqa: N802 - Spark's name
        """Return the rows of the batch that was planned last."""
        self.__class__ = SmallBatchReader
        rows, self._rows_to_send = self._rows_to_send, ()
        return iter(rows)
