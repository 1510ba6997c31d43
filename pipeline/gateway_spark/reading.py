"""Reading of a range of offsets as Arrow batches, in a task on an executor or without Spark."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from gateway_spark.client import Client, Slice
from gateway_spark.errors import BrokerRefused, DataLoss, PipelineError

Batch: TypeAlias = Any  # pyarrow has no types
Lost: TypeAlias = Callable[[str], None]
"""Called with a sentence about lost messages; returns if reading continues without them."""

GONE = 410
RECREATED = "recreated"
NOT_FOUND = 404

#: The column that the broker does not send: its name, if there are several.
BROKER = "broker"


@dataclass
class StreamSpan:
    """A range of messages of one stream, and the origin recorded in the rows.

    ``number`` is that of the task: tasks of a cluster begin at different nodes. ``incarnation`` is that of the stream,
    if known. ``broker`` is the name of its broker, if there are several.
    """

    stream: str
    queue: str
    partition: int
    begin: int
    end: int
    number: int = 0
    incarnation: str | None = None
    broker: str = ""


def loss_rule(fails: bool) -> Lost:
    """Return the handler of lost messages for the option ``failOnDataLoss``."""

    def lost(what: str) -> None:
        if fails:
            raise DataLoss(f"{what}; option 'failOnDataLoss' = false continues without them")
        warnings.warn(f"gateway: {what}", stacklevel=2)

    return lost


def batches(client: Client, span: StreamSpan, expected: Any, lost: Lost) -> Iterator[Batch]:
    """Yield the messages of a range, in order and each once, with the columns of an Arrow schema.

    :raises DataLoss: if some are lost and that is an error.
    """
    sent = pa.schema([field for field in expected if field.name != BROKER])
    offset = span.begin
    while offset < span.end:
        try:
            found = client.read(span.stream, offset, span.end, span.incarnation)
        except BrokerRefused as refusal:
            offset = _after_loss(span, offset, refusal, lost)
            continue
        if not found.first <= offset < found.next:
            raise PipelineError(f"asked for message {offset} of '{span.stream}', got {found.first} to {found.next}")
        for batch in _cut(_decoded(found, sent), offset - found.first, span.end - offset):
            yield _with_broker(_renamed(batch, span), span, expected)
        offset = found.next


def _after_loss(span: StreamSpan, offset: int, refusal: BrokerRefused, lost: Lost) -> int:
    """Return the offset to continue at after the broker reported lost messages."""
    first = refusal.fields.get("first")
    if refusal.status == GONE and isinstance(first, int):
        lost(f"messages {offset} to {min(first, span.end) - 1} of stream '{span.stream}' are gone")
        return max(first, offset + 1)
    if refusal.status == GONE and refusal.fields.get("error") == RECREATED:
        lost(f"stream '{span.stream}' was deleted and declared again: messages {offset} to {span.end - 1} are gone")
        return span.end
    if refusal.status == NOT_FOUND:
        lost(f"stream '{span.stream}' is gone, with its messages {offset} to {span.end - 1}")
        return span.end
    raise refusal


def _decoded(found: Slice, expected: Any) -> Iterator[Batch]:
    """Yield the batches of an answer with only the expected columns, in their order: others are not even decoded."""
    there = pa.ipc.open_stream(found.content).schema
    missing = [name for name in expected.names if there.get_field_index(name) < 0]
    if missing:
        raise PipelineError(f"the broker sends no column {', '.join(missing)}: its version does not match")
    options = pa.ipc.IpcReadOptions(included_fields=[there.get_field_index(name) for name in expected.names])
    with pa.ipc.open_stream(found.content, options=options) as stream:
        if stream.schema.equals(expected):
            yield from stream
            return
        for batch in stream:  # in another order, or with columns that the query knows not to be null
            yield pa.RecordBatch.from_arrays(batch.select(expected.names).columns, schema=expected)


def _cut(whole: Iterator[Batch], skip: int, most: int) -> Iterator[Batch]:
    """Skip the first ``skip`` rows, and return at most ``most``."""
    for batch in whole:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        piece = batch.slice(skip, most) if skip or most < batch.num_rows else batch
        skip, most = 0, most - piece.num_rows
        if piece.num_rows:
            yield piece
        if most <= 0:
            return


def _with_broker(batch: Batch, span: StreamSpan, expected: Any) -> Batch:
    """Add the column with the name of the broker, if it is expected."""
    index = expected.get_field_index(BROKER)
    if index < 0:
        return batch
    column = pa.repeat(pa.scalar(span.broker, pa.string()), batch.num_rows)
    columns = batch.columns
    return pa.RecordBatch.from_arrays([*columns[:index], column, *columns[index:]], schema=expected)


def _renamed(batch: Batch, span: StreamSpan) -> Batch:
    """Name the super stream in the rows of one of its partitions."""
    if span.stream == span.queue and span.partition == 0:
        return batch
    for name, value, kind in (("queue", span.queue, pa.string()), ("partition", span.partition, pa.int32())):
        index = batch.schema.get_field_index(name)
        if index < 0:
            continue
        column = pa.repeat(pa.scalar(value, kind), batch.num_rows)
        batch = batch.set_column(index, batch.schema.field(index), column)
    return batch
