"""The sink: tasks hand rows to the broker, and the driver has all of them published at once, exactly once.

Staged rows are not published. What the driver commits are the attempts whose messages Spark gave it, so a task that
failed, or ran twice, leaves nothing behind but rows that the broker forgets. The broker keeps (producer, query, batch)
with the messages, and a batch that is written again after a crash is a duplicate.

Spark makes the object that writes and the one that commits anew in other processes: everything is in the messages.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from gateway_spark.client import Client, Fields
from gateway_spark.errors import BrokerRefused, OptionError, PipelineError, StagedLost
from gateway_spark.options import SinkOptions, sink_options
from gateway_spark.rows import framed, require_publishable

CONFLICT = 409

#: The local properties in which Spark names the query and the batch to its tasks; not documented, there since 2.x.
_QUERY = "sql.streaming.queryId"


@dataclass
class TaskCommit(WriterCommitMessage):
    """What one attempt of a task handed over: the name it gave itself, how many parts and rows, for which query."""

    attempt: str
    parts: int
    rows: int
    query: str | None


def stage(options: SinkOptions, batches: Iterator[Any], query: str | None) -> TaskCommit:
    """Hand the rows of a task to the broker."""
    attempt, parts, rows = uuid4().hex, 0, 0
    with closing(Client(options.address)) as client:
        for part, count in framed(batches, options.part_bytes):
            client.stage({"attempt": attempt, "part": str(parts)}, part)
            parts, rows = parts + 1, rows + count
    return TaskCommit(attempt, parts, rows, query)


def publish(options: SinkOptions, messages: Sequence[WriterCommitMessage | None], identity: Fields) -> None:
    """Have everything published that tasks staged.

    :raises StagedLost: when the broker has not got it any more, as after a restart.
    :raises PipelineError: when some message reaches no queue and that is not allowed.
    """
    staged = [each for each in messages if isinstance(each, TaskCommit) and each.parts]
    if not staged:
        return
    batch = identity | {
        "attempts": [[each.attempt, each.parts, each.rows] for each in staged],
        "exchange": options.exchange,
        "routing_key": options.routing_key,
        "unroutable": options.unroutable,
        "dead_letter_exchange": options.dead_letter_exchange,
    }
    with closing(Client(options.address)) as client:
        try:
            answer = client.commit(batch)
        except BrokerRefused as refusal:
            raise _explained(refusal) from None
    if answer.get("refused"):
        warnings.warn(f"gateway: {answer['refused']} messages were refused by full queues", stacklevel=2)


def discard(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Let the broker forget what tasks staged; what is not named here it forgets in time."""
    attempts = [each.attempt for each in messages if isinstance(each, TaskCommit) and each.parts]
    if attempts:
        with closing(Client(options.address)) as client:
            client.discard({"attempts": attempts})


class TableWriter(DataSourceArrowWriter):
    """Writes a table once: exactly once with ``producerName`` and ``batchId``, else at least once."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = sink_options(options, is_stream=False)
        _require_append(overwrite)
        require_publishable(schema, self._options)

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """Hand over the rows of a task."""
        return stage(self._options, iterator, None)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish everything."""
        batch_id = self._options.batch_id
        identity: Fields = {}
        if batch_id is not None:
            identity = {"producer": self._options.producer, "query": f"batch {batch_id}", "batch": 0}
        publish(self._options, messages, identity)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish nothing."""
        discard(self._options, messages)


class MicroBatchWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches, each exactly once."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = sink_options(options, is_stream=True)
        _require_append(overwrite)
        require_publishable(schema, self._options)

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """Hand over the rows of a task."""
        context = TaskContext.get()
        return stage(self._options, iterator, context.getLocalProperty(_QUERY) if context is not None else None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish a batch; one that the broker has already is left alone."""
        staged = [each for each in messages if isinstance(each, TaskCommit)]
        if not staged:
            return
        query = staged[0].query
        if query is None:
            raise PipelineError("this version of Spark does not tell its tasks which query they belong to")
        publish(self._options, messages, {"producer": self._options.producer, "query": query, "batch": batchId})

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish nothing of a batch."""
        discard(self._options, messages)


def _require_append(overwrite: bool) -> None:
    if overwrite:
        raise OptionError("mode 'overwrite' is not possible: what is published stays; use append")


def _explained(refusal: BrokerRefused) -> PipelineError:
    """Return what to tell of a commit that the broker declined."""
    if refusal.status == CONFLICT and refusal.fields.get("error") == "not_staged":
        return StagedLost(f"{refusal}; start the query again, and the batch is written again")
    return PipelineError(f"nothing of the batch was published: {refusal}")
