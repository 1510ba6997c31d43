"""Planning by the driver: the streams of a selection, and the offsets of bounds."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from gateway_spark.bounds import EARLIEST_OFFSET, LATEST_OFFSET, Bound
from gateway_spark.brokers import Brokers
from gateway_spark.client import Partition
from gateway_spark.errors import OptionError
from gateway_spark.offsets import Key, Range, is_same
from gateway_spark.reading import Lost

Streams: TypeAlias = Mapping[Key, Partition]


def offset_of(bound: Bound, option: str, key: Key, partition: Partition, brokers: Brokers) -> int:
    """Return the offset of a bound in a partition. :raises OptionError: if it is missing or beyond the end."""
    if bound.time_ms is not None:
        return brokers.offset_at(partition, bound.time_ms)
    if bound.word:
        return partition.first if bound.word == "earliest" else partition.next
    entry = bound.offset_by_key.get(key)
    if entry is None:
        raise OptionError(f"option '{option}' names no offset of {place(key)}")
    if not is_same(entry.incarnation, partition.incarnation):
        raise OptionError(f"option '{option}': {place(key)} was deleted and declared again since that offset")
    offset = entry.next
    if offset > partition.next:
        raise OptionError(f"option '{option}': {place(key)} ends at {partition.next}, before {offset}")
    return {EARLIEST_OFFSET: partition.first, LATEST_OFFSET: partition.next}.get(offset, offset)


def require_selected(bound: Bound, option: str, streams: Streams) -> None:
    """Check that all named offsets belong to selected partitions. :raises OptionError: if one does not."""
    for key in bound.offset_by_key:
        if key not in streams:
            raise OptionError(f"option '{option}' names {place(key)}, which is not selected")


def still_there(wanted: Iterable[Range], streams: Streams, lost: Lost) -> list[Range]:
    """Return the readable parts of ranges, after reporting lost messages."""
    kept = []
    for each in wanted:
        partition, name = streams.get(each.key), place(each.key)
        if partition is None:
            lost(f"{name} is gone, with its messages {each.begin} to {each.end - 1}")
            continue
        if not is_same(each.incarnation, partition.incarnation):
            lost(f"{recreated(each.key)}: messages {each.begin} to {each.end - 1} are gone")
            continue
        if each.begin < partition.first:
            lost(f"messages {each.begin} to {min(partition.first, each.end) - 1} of {name} are gone")
        if each.end > partition.next:
            lost(f"messages {max(partition.next, each.begin)} to {each.end - 1} of {name} are gone: it ends before")
        begin, end = max(each.begin, partition.first), min(each.end, partition.next)
        if begin < end:
            kept.append(Range(each.key, begin, end, partition.incarnation))
    return kept


def recreated(key: Key) -> str:
    """Return the sentence about a stream that has a successor of the same name."""
    return f"{place(key)} was deleted and declared again"


def place(key: Key) -> str:
    """Return the name of a partition for messages."""
    return f"queue '{key.queue}', partition {key.partition}"
