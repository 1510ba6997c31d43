"""The tasks of a read: ranges of offsets that Spark sends to its executors."""

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from gateway_spark.client import Client
from gateway_spark.offsets import Range, split
from gateway_spark.options import SourceOptions
from gateway_spark.planning import Streams
from gateway_spark.reading import Batch, StreamSpan, batches, loss_rule
from gateway_spark.spark_versions import arrow_schema


@dataclass
class Task(StreamSpan, InputPartition):
    """The range of one task."""


def tasks(wanted: Iterable[Range], streams: Streams, options: SourceOptions) -> list[Task]:
    """Cut ranges into tasks."""
    pieces = split(wanted, least=options.min_partitions, most_rows=options.max_rows_per_partition)
    return [
        Task(
            streams[each.key].queue,
            each.key.queue,
            int(each.key.number),
            each.begin,
            each.end,
            number,
            each.incarnation,
            each.key.broker,
        )
        for number, each in enumerate(pieces)
    ]


def messages(partition: InputPartition, options: SourceOptions, schema: StructType) -> Generator[Batch, None, None]:
    """Yield the messages of a task as Arrow batches; none for Spark's own partition, if there are no tasks.

    :raises DataLoss: if some are lost and that is an error.
    """
    if not isinstance(partition, Task):
        return
    address = options.brokers[partition.broker].beginning_at(partition.number)
    with closing(Client(address)) as client:
        yield from batches(client, partition, arrow_schema(schema), loss_rule(options.fails_on_loss))
