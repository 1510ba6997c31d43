"""The options of the source and the sink: their names, their values, and the parsed results."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway_spark.address import CONNECTION, CONNECTIONS, Address, address_of, addresses_of
from gateway_spark.bounds import EARLIEST, LATEST, Bound, ending_offsets, exact_time, starting_offsets
from gateway_spark.choices import (
    Reader,
    count,
    count_or_zero,
    duration_s,
    flag,
    moment_ms,
    names,
    one_of,
    pattern,
    text,
)
from gateway_spark.errors import OptionError
from gateway_spark.given import Given, listed

DEFAULT_MAX_DELAY_S: Final = 15 * 60.0

#: Most messages of a micro-batch that the driver reads while it plans.
DEFAULT_SMALL_BATCH: Final = 1000

SOURCE: Final[Mapping[str, Reader]] = {
    **CONNECTIONS,
    "queue": text,
    "queues": names,
    "queuePattern": pattern,
    "startingOffsets": starting_offsets,
    "startingTimestamp": moment_ms,
    "endingOffsets": ending_offsets,
    "endingTimestamp": moment_ms,
    "maxOffsetsPerTrigger": count,
    "maxBytesPerTrigger": count,
    "minOffsetsPerTrigger": count,
    "maxTriggerDelay": duration_s,
    "minPartitions": count,
    "maxOffsetsPerPartition": count,
    "smallBatch": count_or_zero,
    "failOnDataLoss": flag,
    "includeHeaders": flag,
    "includeBody": flag,
    "pushdown": flag,
    "consumerName": text,
}

SINK: Final[Mapping[str, Reader]] = {
    **CONNECTION,
    "exchange": str,
    "routingKey": str,
    "unroutable": one_of("fail", "drop", "deadletter"),
    "deadLetterExchange": text,
    "producerName": text,
    "batchId": text,
    "maxInFlight": count,
}

_STREAM_ONLY: Final = (
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "smallBatch",
    "consumerName",
)
_BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp", "pushdown")


@dataclass(frozen=True, slots=True)
class QueueSelection:
    """The queues to read: names, or a pattern for the whole name."""

    names: tuple[str, ...] = ()
    pattern: str | None = None

    def __str__(self) -> str:
        return self.pattern if self.pattern is not None else ",".join(self.names)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits of one micro-batch; ``None`` for no limit. With fewer than ``min_rows`` it waits, for a limited
    time.
    """

    max_rows: int | None = None
    max_bytes: int | None = None
    min_rows: int | None = None
    max_delay_s: float = DEFAULT_MAX_DELAY_S


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The parsed options of a reader. ``brokers`` are the addresses by name; the only broker has the name ``""``."""

    brokers: Mapping[str, Address]
    selection: QueueSelection
    start: Bound
    end: Bound = LATEST
    limits: ReadLimits = ReadLimits()
    min_partitions: int | None = None
    max_rows_per_partition: int | None = None
    small_batch: int = DEFAULT_SMALL_BATCH
    fails_on_loss: bool = True
    has_headers: bool = True
    has_body: bool = True
    pushes_filters: bool = False
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The parsed options of a writer. ``batch_id`` is for batch writes, which without it may repeat messages."""

    address: Address
    exchange: str | None = None
    routing_key: str | None = None
    unroutable: str = "fail"
    dead_letter_exchange: str | None = None
    producer: str = "spark"
    batch_id: str | None = None
    part_bytes: int = 4 * 2**20


def source_options(options: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """Parse the options of a source. :raises OptionError: in one line, for the first invalid one."""
    given = Given(options, SOURCE)
    if is_stream:
        given.refuse(_BATCH_ONLY, "is for batch reads: a streaming query has no end")
    else:
        given.refuse(_STREAM_ONLY, "is for streaming queries")
    selection = _selection(given)
    return SourceOptions(
        brokers=addresses_of(given),
        selection=selection,
        start=_start(given, LATEST if is_stream else EARLIEST),
        end=_end(given),
        limits=ReadLimits(
            given.get("maxOffsetsPerTrigger"),
            given.get("maxBytesPerTrigger"),
            given.get("minOffsetsPerTrigger"),
            given.get("maxTriggerDelay", DEFAULT_MAX_DELAY_S),
        ),
        min_partitions=given.get("minPartitions"),
        max_rows_per_partition=given.get("maxOffsetsPerPartition"),
        small_batch=given.get("smallBatch", DEFAULT_SMALL_BATCH),
        fails_on_loss=given.get("failOnDataLoss", True),
        has_headers=given.get("includeHeaders", True),
        has_body=given.get("includeBody", True),
        pushes_filters=given.get("pushdown", False),
        consumer=given.get("consumerName", f"spark {selection}"),
    )


def check_options(options: Mapping[str, str]) -> None:
    """Check the options of a source before it is known whether it is a stream. :raises OptionError: as its reader."""
    names = {name.lower() for name in options}
    if not names & {name.lower() for name in SINK.keys() - SOURCE.keys()}:
        source_options(options, is_stream=bool(names & {name.lower() for name in _STREAM_ONLY}))


def sink_options(options: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    """Parse the options of a sink. :raises OptionError: in one line, for the first invalid one."""
    given = Given(options, SINK)
    if is_stream:
        given.refuse(("batchId",), "is for batch writes: a streaming query numbers its batches itself")
    elif ("batchId" in given) != ("producerName" in given):
        raise OptionError("options 'batchId' and 'producerName' go together in a batch write")
    unroutable = given.get("unroutable", "fail")
    if (unroutable == "deadletter") != ("deadLetterExchange" in given):
        raise OptionError("options 'deadLetterExchange' and 'unroutable' = deadletter require each other")
    defaults = SinkOptions.__dataclass_fields__
    return SinkOptions(
        address=address_of(given),
        exchange=given.get("exchange"),
        routing_key=given.get("routingKey"),
        unroutable=unroutable,
        dead_letter_exchange=given.get("deadLetterExchange"),
        producer=given.get("producerName", defaults["producer"].default),
        batch_id=given.get("batchId"),
        part_bytes=given.get("maxInFlight", defaults["part_bytes"].default),
    )


def _selection(given: Given) -> QueueSelection:
    which = given.only_one("queue", "queues", "queuePattern")
    if which is None:
        raise OptionError(f"one of the options {listed(('queue', 'queues', 'queuePattern'))} is required")
    if which == "queuePattern":
        return QueueSelection(pattern=given.get(which))
    return QueueSelection((given.get(which),) if which == "queue" else given.get(which))


def _start(given: Given, default: Bound) -> Bound:
    which = given.only_one("startingOffsets", "startingTimestamp")
    if which == "startingTimestamp":
        return exact_time(given.get(which))
    return given.get(which, default) if which else default


def _end(given: Given) -> Bound:
    which = given.only_one("endingOffsets", "endingTimestamp")
    if which == "endingTimestamp":
        return exact_time(given.get(which))
    return given.get(which, LATEST) if which else LATEST
