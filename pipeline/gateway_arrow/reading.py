"""Reading of a stream, or of all partitions of a super stream, up to its present end."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway_arrow.schema import MESSAGES
from gateway_spark.bounds import EARLIEST, LATEST, Bound, exact_time
from gateway_spark.brokers import Brokers
from gateway_spark.choices import ceil_ms, moment_ms
from gateway_spark.client import Client, Partition
from gateway_spark.errors import OptionError
from gateway_spark.offsets import Key, PartitionOffset, decode, encode, is_same
from gateway_spark.options import SourceOptions, source_options
from gateway_spark.planning import offset_of, place, recreated
from gateway_spark.reading import StreamSpan, batches, loss_rule

Place: TypeAlias = str | int | datetime
"""``earliest``, ``latest``, an offset, or a time: a ``datetime`` or ISO 8601, in UTC by default."""

#: A filter as in ``pyarrow.parquet.read_table``: an expression, or tuples such as ``("protocol", "=", "MQTT 3-1-1")``.
Filter: TypeAlias = Any

#: Always decoded: the position follows from it.
OFFSET: Final = "offset"

#: The options in lower case, without those of TLS.
_ALLOWED: Final = frozenset(
    ("vhost", "username", "password", "passwordfile", "passwordenv", "retrytimeout", "failondataloss")
)


def read(
    url: str | Sequence[str],
    stream: str,
    *,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    start: Place = "earliest",
    end: Place = "latest",
    **options: Any,
) -> Any:
    """Return the messages of a stream as a ``pyarrow.RecordBatchReader``, which fetches them as they are read.

    :raises PipelineError: here or while reading, in one line, as ``StreamReading`` does.
    """
    return StreamReading(url, stream, columns=columns, filter=filter, start=start, end=end, **options).reader


class StreamReading:
    """One pass over the messages from ``start`` to before ``end``, or from ``position``, where an earlier one ended.

    ``url`` is the management port of the broker, or a list of those of a cluster's nodes. ``columns`` are those to
    return, in this order; others are not decoded, except that a ``filter`` which is an expression decodes all.
    ``options`` are those of the connection, ``failOnDataLoss`` and ``retryTimeout``, as in ``docs/spark.md``.

    :raises OptionError: for an invalid argument, or a stream that does not exist.
    :raises AccessError: if the user may not read the stream.
    :raises DataLoss: if messages are lost that were to be read.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        stream: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        start: Place = "earliest",
        end: Place = "latest",
        position: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if position is not None and start != "earliest":
            raise OptionError("give one of 'start' and 'position', not both")
        self._options = _options(url, stream, options)
        self._lost = loss_rule(self._options.fails_on_loss)
        self._columns = _existing(columns, "column") or MESSAGES.names
        self._filter, filtered = _parsed(filter)
        needed = {OFFSET, *self._columns, *filtered}
        self._decoded = pa.schema([field for field in MESSAGES if field.name in needed])
        self._reached = decode(dict(position or {}))
        self._spans = self._planned(_bound(start, "start", stream), _bound(end, "end", stream))
        self.schema = pa.schema([MESSAGES.field(name) for name in self._columns])
        self.reader: Any = pa.RecordBatchReader.from_batches(self.schema, self._batches())

    @property
    def position(self) -> dict[str, Any]:
        """The position after all batches that were taken from the reader, for JSON: the argument of a later reading."""
        return encode(self._reached)

    def _planned(self, start: Bound, end: Bound) -> list[tuple[Key, StreamSpan]]:
        """Return the messages to read of each partition."""
        spans = []
        with closing(Brokers(self._options.brokers)) as brokers:
            streams = brokers.streams(self._options.selection)
            brokers.require_clusters(self._options.selection, streams)
            for key in self._reached.keys() - streams.keys():
                self._lost(f"{place(key)} is gone")
            for number, (key, partition) in enumerate(streams.items()):
                begin = self._begin(key, partition, start, brokers)
                stop = offset_of(end, "end", key, partition, brokers)
                span = StreamSpan(
                    partition.queue, key.queue, int(key.number), begin, stop, number, partition.incarnation
                )
                spans.append((key, span))
                self._reached[key] = PartitionOffset(begin, None, partition.incarnation)
        return spans

    def _begin(self, key: Key, partition: Partition, start: Bound, brokers: Brokers) -> int:
        """Return the offset to begin at, after reporting lost messages."""
        entry = self._reached.get(key)
        if entry is None:
            begin = offset_of(start, "start", key, partition, brokers)
        elif is_same(entry.incarnation, partition.incarnation) and entry.next <= partition.next:
            begin = entry.next
        else:
            self._lost(f"{recreated(key)}, read up to {entry.next} before: messages may be lost")
            begin = partition.first
        if begin < partition.first:
            self._lost(f"messages {begin} to {partition.first - 1} of {place(key)} are gone")
        return max(begin, partition.first)

    def _batches(self) -> Iterator[Any]:
        for key, span in self._spans:
            address = self._options.brokers[key.broker].beginning_at(span.number)
            with closing(Client(address)) as client:
                for batch in batches(client, span, self._decoded, self._lost):
                    yield from self._taken(key, span, batch)
            self._move(key, max(span.begin, span.end), span)

    def _taken(self, key: Key, span: StreamSpan, batch: Any) -> Iterator[Any]:
        """Yield the wanted rows and columns of a batch; the position is behind it when they are taken."""
        self._move(key, batch.column(batch.schema.get_field_index(OFFSET))[-1].as_py() + 1, span)
        if self._filter is None:
            yield batch.select(self._columns)
            return
        rows = pa.Table.from_batches([batch]).filter(self._filter).select(self._columns)
        yield from rows.cast(self.schema).to_batches()

    def _move(self, key: Key, offset: int, span: StreamSpan) -> None:
        self._reached[key] = PartitionOffset(offset, None, span.incarnation)


def _options(url: str | Sequence[str], stream: str, options: Mapping[str, Any]) -> SourceOptions:
    """Parse the options. :raises OptionError: for the first invalid one."""
    allowed = "vhost, username, password, passwordFile, passwordEnv, tls.*, retryTimeout and failOnDataLoss"
    for name in options:
        if name.lower() not in _ALLOWED and not name.lower().startswith("tls."):
            raise OptionError(f"there is no option '{name}'; there are {allowed}")
    urls = url if isinstance(url, str) else ",".join(url)
    texts = {name: str(value) for name, value in options.items()}
    return source_options({"urls": urls, "queues": json.dumps([stream]), **texts}, is_stream=False)


def _bound(where: Place, name: str, stream: str) -> Bound:
    """Return the bound of a place. :raises OptionError: if it is not one."""
    if isinstance(where, datetime):
        return exact_time(ceil_ms(where))
    if isinstance(where, int) and not isinstance(where, bool) and where >= 0:
        return Bound(offset_by_key={Key(stream, "0"): PartitionOffset(where)})
    if where == "latest":
        return LATEST
    if where == "earliest" and name == "start":
        return EARLIEST
    if isinstance(where, str) and not where.isdigit():
        with suppress(ValueError):
            return exact_time(moment_ms(where))
    words = "earliest, latest" if name == "start" else "latest"
    raise OptionError(f"'{name}' must be {words}, an offset from 0, or a time, not {where!r}")


def _existing(names: Sequence[str] | None, what: str) -> list[str]:
    """Return names of columns. :raises OptionError: if one does not exist or is repeated."""
    given = list(names or ())
    for name in given:
        if name not in MESSAGES.names:
            raise OptionError(f"there is no {what} '{name}'; there are {', '.join(MESSAGES.names)}")
    if len(set(given)) < len(given):
        raise OptionError(f"a {what} is named twice")
    return given


def _parsed(filter: Filter | None) -> tuple[Any, list[str]]:
    """Return a filter as an expression, and the columns that it may use. :raises OptionError: if it is not one."""
    if filter is None:
        return None, []
    if isinstance(filter, pc.Expression):
        return filter, MESSAGES.names
    try:
        expression = pq.filters_to_expression(filter)
        terms = filter if isinstance(filter[0], tuple) else [term for group in filter for term in group]
        used = [str(term[0]) for term in terms]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise OptionError(
            f"'filter' must be an expression or tuples, as in pyarrow.parquet.read_table: {error}"
        ) from None
    return expression, _existing(list(dict.fromkeys(used)), "column")
