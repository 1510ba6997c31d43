"""The sink: tasks stage rows at the broker, and the driver commits all of them at once, exactly once.

Staged rows are on the broker's disk and not published. The driver commits only the attempts whose messages Spark
returned, so the rows of a failed or repeated task are dropped by the broker. The broker stores (producer, query, batch)
with the commit, and a batch that is written again after a crash is a duplicate. Each request is repeated while the
broker restarts.

A job that runs again after its driver died replaces the rows that the earlier run has staged, and stages none if the
batch is committed.

Spark creates the writing and the committing object in separate processes: all state is in the messages.
"""

import json
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from gateway_spark.client import Client, Fields
from gateway_spark.errors import BatchHeld, BrokerRefused, OptionError, PipelineError, StagedLost
from gateway_spark.framing import framed
from gateway_spark.one_line import one_line
from gateway_spark.options import SinkOptions, sink_options
from gateway_spark.rows import require_publishable
from gateway_spark.spark_versions import StreamArrowWriter

CONFLICT = 409

#: The local properties with the query and the batch in Spark's tasks; not documented, but present since 2.x.
_QUERY = "sql.streaming.queryId"

#: Hexadecimal digits that name a batch in the names of its attempts.
_BATCH_DIGITS: Final = 24


@dataclass
class TaskCommit(WriterCommitMessage):
    """The rows staged by one attempt of a task: its name, the number of parts and rows, and the query.

    ``is_repeated`` if the task found the batch committed, and staged nothing.
    """

    attempt: str
    parts: int
    rows: int
    query: str | None
    is_repeated: bool = False


def new_run(batch: str) -> str:
    """Return the name of a run of a batch, with which those of its attempts begin. Later runs have greater names."""
    return f"{batch}.{time.time_ns() // 1_000_000:012x}{token_hex(2)}"


def stage(options: SinkOptions, batches: Iterator[Any], query: str | None, run: str | None = None) -> TaskCommit:
    """Stage the rows of a task at the broker.

    :raises StagedLost: if the broker no longer has earlier rows of the task, as after a takeover in a cluster; Spark
        runs the task again.
    """
    attempt, parts, rows = uuid4().hex if run is None else f"{run}.{token_hex(8)}", 0, 0
    place = {"attempt": attempt} if options.exchange is None else {"attempt": attempt, "exchange": options.exchange}
    with closing(Client(options.address)) as client:
        for part, count in framed(batches, options.part_bytes):
            staged = client.stage({**place, "part": str(parts)}, part)
            parts, rows = parts + 1, rows + count
            if staged.get("parts", parts) < parts:
                raise StagedLost("the broker no longer has all rows of the task, which has to run again")
    return TaskCommit(attempt, parts, rows, query)


def publish(options: SinkOptions, messages: Sequence[WriterCommitMessage | None], identity: Fields) -> None:
    """Publish all rows that tasks staged.

    :raises StagedLost: if the broker no longer has them: they have expired, or another node of a cluster took over.
    :raises PipelineError: if an unroutable message is not permitted.
    """
    commits = [each for each in messages if isinstance(each, TaskCommit)]
    staged = [each for each in commits if each.parts]
    is_repeated = any(each.is_repeated for each in commits)
    if not staged and not is_repeated:
        return
    batch = identity | {
        "attempts": [[each.attempt, each.parts, each.rows] for each in staged],
        "exchange": options.exchange,
        "routing_key": options.routing_key,
        "unroutable": options.unroutable,
        "dead_letter_exchange": options.dead_letter_exchange,
    }
    if is_repeated:
        batch["is_repeated"] = True
    with closing(Client(options.address)) as client:
        try:
            answer = client.commit(batch)
        except BrokerRefused as refusal:
            raise _explained(refusal) from None
        except BatchHeld as held:
            raise BatchHeld(f"the batch is committed, and is published once this is over: {held}") from None
    if answer.get("refused"):
        warnings.warn(f"gateway: {answer['refused']} messages were refused by full queues", stacklevel=2)


def discard(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Drop the rows that tasks staged; the broker drops others after a timeout."""
    attempts = [each.attempt for each in messages if isinstance(each, TaskCommit) and each.parts]
    if attempts:
        with closing(Client(options.address)) as client:
            client.discard({"attempts": attempts})


class TableWriter(DataSourceArrowWriter):
    """Writes a table once: exactly once with ``producerName`` and ``batchId``, otherwise at least once."""

    @one_line
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = sink_options(options, is_stream=False)
        _require_append(overwrite)
        require_publishable(schema, self._options)
        batch_id = self._options.batch_id
        query = f"job {uuid4().hex}" if batch_id is None else f"batch {batch_id}"
        self._identity = {"producer": self._options.producer, "query": query, "batch": 0}
        self._run = new_run(sha256(json.dumps(self._identity).encode()).hexdigest()[:_BATCH_DIGITS])

    @one_line
    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """Stage the rows of a task, unless an earlier run has committed the batch."""
        if self._options.batch_id is not None:
            with closing(Client(self._options.address)) as client:
                is_repeated = client.is_committed(self._identity)
            if is_repeated:
                # Spark 4.3 accepts a task that leaves rows, but each one leaks the Arrow batch at hand: 16 MiB of the
                # executor's direct memory, until a task fails with OutOfMemoryException.
                deque(iterator, maxlen=0)
                return TaskCommit("", 0, 0, None, is_repeated=True)
        return stage(self._options, iterator, None, self._run)

    @one_line
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish all rows."""
        publish(self._options, messages, self._identity)

    @one_line
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish nothing."""
        discard(self._options, messages)


class MicroBatchWriter(StreamArrowWriter):
    """Writes micro-batches, each exactly once."""

    @one_line
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = sink_options(options, is_stream=True)
        _require_append(overwrite)
        require_publishable(schema, self._options)

    @one_line
    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """Stage the rows of a task."""
        context = TaskContext.get()
        return stage(self._options, iterator, context.getLocalProperty(_QUERY) if context is not None else None)

    @one_line
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish a batch; a duplicate is ignored."""
        staged = [each for each in messages if isinstance(each, TaskCommit)]
        if not staged:
            return
        query = staged[0].query
        if query is None:
            raise PipelineError("this version of Spark does not provide the query id to tasks")
        publish(self._options, messages, {"producer": self._options.producer, "query": query, "batch": batchId})

    @one_line
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish nothing of a batch."""
        discard(self._options, messages)


def _require_append(overwrite: bool) -> None:
    if overwrite:
        raise OptionError("mode 'overwrite' is not possible: published messages stay; use append")


def _explained(refusal: BrokerRefused) -> PipelineError:
    """Return the error of a refused commit."""
    if refusal.status == CONFLICT and refusal.fields.get("error") in ("not_staged", "damaged"):
        return StagedLost(f"{refusal}; restart the query to write the batch again")
    return PipelineError(f"nothing of the batch was published: {refusal}")
