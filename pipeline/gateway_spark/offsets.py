"""The progress of a query: arithmetic on offsets, without a broker and without Spark.

An offset of Spark is JSON, ``{"orders": {"0": 500}}``: the next message of each partition. When a partition appears
for the first time or starts over, it is ``{"orders": {"0": {"from": 20, "next": 500}}}``: the checkpoint contains
the start with the end, so a repeated batch reads the same messages, whatever happened to the stream meanwhile. A
query therefore begins at ``{}``.

The member ``incarnation`` names the stream that was read, because another one of the same name may follow it:
``{"orders": {"0": {"incarnation": "1790000000000-7", "next": 500}}}``. Brokers and checkpoints before it have none.

Spark 4.0 and 4.1 do not tell the source which batch is the first one. There each entry has the start of the query as
``origin``, which applies to its first batch only, and the first message of the stream as ``first``, where a partition
begins that was added later.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from gateway_spark.errors import OptionError


class Key(NamedTuple):
    """A partition of a queue; a plain stream has only the partition ``"0"``.

    Of several brokers each has partitions of its own, with the broker's name before the number: ``"oslo:0"``.
    """

    queue: str
    partition: str

    @property
    def broker(self) -> str:
        """The name of the broker; empty if there is only one."""
        return self.partition.rpartition(":")[0]

    @property
    def number(self) -> str:
        """The number of the partition at its broker."""
        return self.partition.rpartition(":")[2]


class PartitionOffset(NamedTuple):
    """The position in one partition: the next offset, and the start, or ``None`` if the previous entry gives it.

    ``incarnation`` is that of the stream, ``None`` if unknown. With older versions of Spark ``origin`` is the start of
    the query, and ``first`` the first message of the stream when the batch was planned.
    """

    next: int
    since: int | None = None
    incarnation: str | None = None
    origin: int | None = None
    first: int | None = None


class Range(NamedTuple):
    """Offsets of one partition from ``begin`` to before ``end``, in the stream of this incarnation, if known."""

    key: Key
    begin: int
    end: int
    incarnation: str | None = None

    @property
    def size(self) -> int:
        """The number of messages."""
        return self.end - self.begin


Reached: TypeAlias = Mapping[Key, PartitionOffset]
Json: TypeAlias = dict[str, Any]  # an offset decoded by json.loads


def decode(offset: Json) -> dict[Key, PartitionOffset]:
    """Parse an offset of Spark. :raises OptionError: if it is not an offset of this source."""
    try:
        return {
            Key(queue, partition): _entry(value)
            for queue, partitions in offset.items()
            for partition, value in partitions.items()
        }
    except (AttributeError, KeyError, TypeError):
        raise OptionError(f"this is not an offset of a gateway source: {offset!r}") from None


def encode(reached: Reached) -> Json:
    """Return an offset for Spark; always in the same order, because Spark compares the text."""
    offset: Json = {}
    for key in sorted(reached, key=_place):
        offset.setdefault(key.queue, {})[key.partition] = _written(reached[key])
    return offset


def is_same(one: str | None, other: str | None) -> bool:
    """Return whether two incarnations may be the same stream; older checkpoints and brokers name none."""
    return one is None or other is None or one == other


def ranges(start: Reached, end: Reached) -> list[Range]:
    """Return the ranges between two offsets. A partition without a start in ``end`` continues at ``start``."""
    found = []
    for key in sorted(end, key=_place):
        entry, before = end[key], start.get(key)
        if entry == before:
            continue
        begin = _begin(before, entry, is_first=not start)
        if begin < entry.next:
            found.append(Range(key, begin, entry.next, entry.incarnation))
    return found


def _begin(before: PartitionOffset | None, entry: PartitionOffset, *, is_first: bool) -> int:
    """Return where the messages of a batch begin in a partition; those that are gone are reported when it is read."""
    if entry.since is not None:
        return entry.since
    if before is not None:
        return before.next if is_same(before.incarnation, entry.incarnation) else entry.first or 0
    if entry.first is None and entry.origin is None:
        return entry.next
    return origin(entry) if is_first else entry.first or 0


def origin(entry: PartitionOffset) -> int:
    """Return the start of the query that an entry of an older version of Spark has.

    :raises OptionError: if there was none when the batch was planned.
    """
    if entry.origin is None:
        raise OptionError(
            "the first batch was planned with refused options: nothing is read yet, so delete the checkpoint"
        )
    return entry.origin


def limited(waiting: Iterable[Range], most: int) -> list[Range]:
    """Take ``most`` of the waiting messages, a share from each partition; all of them if there are fewer.

    No partition starves: each one gets at least one message; if there are more partitions than messages, they
    alternate. The order follows from the offsets alone.
    """
    waiting = sorted(waiting, key=lambda each: _place(each.key))
    total = sum(each.size for each in waiting)
    if total <= most:
        return waiting
    if most < len(waiting):
        return _in_turns(waiting, most)
    shares = _shares([each.size for each in waiting], most)
    return [each._replace(end=each.begin + share) for each, share in zip(waiting, shares, strict=True)]


def _in_turns(waiting: list[Range], most: int) -> list[Range]:
    """Take one message from each of ``most`` partitions; the following partitions are next."""
    first = sum(each.begin for each in waiting) % len(waiting)
    chosen = (waiting + waiting)[first : first + most]
    return [each._replace(end=each.begin + 1) for each in chosen]


def _shares(sizes: list[int], most: int) -> list[int]:
    """Divide ``most`` in proportion to ``sizes``, at least one each, at most the available number; the sum is
    ``most``.
    """
    spare, total = most - len(sizes), sum(sizes) - len(sizes)
    shares = [1 + (size - 1) * spare // total for size in sizes]
    left = most - sum(shares)
    for index in sorted(range(len(sizes)), key=lambda index: shares[index] - sizes[index]):
        extra = min(left, sizes[index] - shares[index])
        shares[index] += extra
        left -= extra
    return shares


def split(whole: Iterable[Range], *, least: int | None = None, most_rows: int | None = None) -> list[Range]:
    """Cut ranges into tasks: at least ``least``, if there are enough messages, of at most ``most_rows`` each."""
    whole = [each for each in whole if each.size > 0]
    total = sum(each.size for each in whole)
    pieces = []
    for each in whole:
        count = 1 if least is None else min(each.size, -(-each.size * least // total))
        if most_rows is not None:
            count = max(count, -(-each.size // most_rows))
        cuts = [each.begin + each.size * index // count for index in range(count + 1)]
        pieces += [each._replace(begin=begin, end=end) for begin, end in pairwise(cuts)]
    return pieces


def _written(entry: PartitionOffset) -> Any:
    members = {"incarnation": entry.incarnation, "from": entry.since, "origin": entry.origin, "first": entry.first}
    given = {name: value for name, value in members.items() if value is not None}
    return given | {"next": entry.next} if given else entry.next


def _entry(value: object) -> PartitionOffset:
    if not isinstance(value, dict):
        return PartitionOffset(_offset(value))
    incarnation = value.get("incarnation")
    since, origin, first = (_offset_or_none(value.get(name)) for name in ("from", "origin", "first"))
    if not isinstance(incarnation, str | None) or all(each is None for each in (since, incarnation, origin, first)):
        raise TypeError(value)
    return PartitionOffset(_offset(value["next"]), since, incarnation, origin, first)


def _offset_or_none(value: object) -> int | None:
    return None if value is None else _offset(value)


def _offset(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value


def _place(key: Key) -> tuple[str, str, int, str]:
    """Return the sort key of a partition: queue, broker and number."""
    return key.queue, key.broker, int(key.number) if key.number.isdigit() else 0, key.partition
