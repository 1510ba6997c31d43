"""The progress of queries from their checkpoints, their lag at the broker and the batches of their sinks there.

Needs no Spark.

A checkpoint of Spark has ``metadata`` (the id of the query), ``offsets/N`` (the planned end of batch N) and
``commits/N`` (batch N is complete). Batches are read in the order of their numbers; incomplete files are ignored.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gateway_spark.brokers import Brokers
from gateway_spark.client import Partition
from gateway_spark.errors import AccessError, BrokerRefused, OptionError
from gateway_spark.offsets import Key, PartitionOffset, decode, is_same
from gateway_spark.options import QueueSelection


@dataclass(frozen=True, slots=True)
class Reached:
    """The progress of one query: its last planned and its last complete batch, ``None`` before the first."""

    query: str
    planned: int | None
    done: int | None
    entry_by_key: Mapping[Key, PartitionOffset]
    """The position in each partition after the last complete batch."""


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition in a status: the position of the query, and the stream at the broker, ``None`` if there is none."""

    key: Key
    entry: PartitionOffset
    stream: Partition | None

    def __str__(self) -> str:
        name, at = f"{self.key.queue}/{self.key.partition}", self.entry.next
        if self.stream is None:
            return f"{name}: at {at}, of a stream that was deleted"
        if not is_same(self.entry.incarnation, self.stream.incarnation):
            count = self.stream.next - self.stream.first
            return f"{name}: at {at}, of a stream that was deleted and declared again: {count} to go in the new one"
        if at > self.stream.next:
            return f"{name}: at {at}, beyond the end of the stream, {self.stream.next}: it was declared again"
        gone = max(0, self.stream.first - at)
        lost = f", {gone} of them deleted by retention" if gone else ""
        return f"{name}: at {at}, of {self.stream.next}: {self.stream.next - at} to go{lost}"


def batch_done(checkpoint: Path) -> int | None:
    """Return the number of the last complete batch of a checkpoint, or ``None``."""
    done = _batches(checkpoint / "commits")
    return done[-1] if done else None


def query_id(checkpoint: Path) -> str | None:
    """Return the id of the query of this checkpoint, or ``None`` if there is none."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError):
        return None


def reached(checkpoint: Path) -> Reached:
    """Read a checkpoint. :raises OptionError: if the directory is not one."""
    query = query_id(checkpoint)
    if query is None:
        raise OptionError(f"{checkpoint} is not a checkpoint of a streaming query")
    planned, done = _batches(checkpoint / "offsets"), _batches(checkpoint / "commits")
    finished = [batch for batch in done if batch in planned]
    entries = _entries(checkpoint / "offsets" / str(finished[-1])) if finished else {}
    return Reached(query, planned[-1] if planned else None, done[-1] if done else None, entries)


def lines(reached: Reached, brokers: Brokers) -> list[PartitionLine]:
    """Return the position in each partition, with its stream."""
    streams = _streams(reached, brokers)
    return [PartitionLine(key, entry, streams.get(key)) for key, entry in sorted(reached.entry_by_key.items())]


def described(checkpoint: Path, brokers: Brokers | None) -> Iterator[str]:
    """Yield the lines of a status for people. :raises OptionError: if the directory is not a checkpoint."""
    found = reached(checkpoint)
    yield f"{checkpoint}: query {found.query}, batch {_shown(found.done)} done, {_shown(found.planned)} planned"
    if brokers is None:
        for key, entry in sorted(found.entry_by_key.items()):
            yield f"  {key.queue}/{key.partition}: at {entry.next}"
        return
    with closing(brokers):
        for line in lines(found, brokers):
            yield f"  {line}"
        for written in _written(found, brokers):
            yield f"  {written}"


def _written(reached: Reached, brokers: Brokers) -> Iterator[str]:
    """Yield a line for each batch of the query that the broker has not published yet, if it has any."""
    try:
        batches = brokers.batches(reached.query)
    except (AccessError, BrokerRefused) as error:
        yield f"batches of its sink are not shown: {error}"
        return
    for batch in batches:
        name, rows = f"sink, batch {batch['batch']}", f"of {batch['rows']} rows"
        if batch["state"] == "checked":
            yield f"{name}: {batch['checked']} {rows} checked"
        elif batch["state"] == "held":
            yield f"{name}: held after {batch['published']} {rows}: {batch['reason']}"
        else:
            yield f"{name}: {batch['published']} {rows} published"


def _streams(reached: Reached, brokers: Brokers) -> dict[Key, Partition]:
    """Return the streams of a query that still exist."""
    found: dict[Key, Partition] = {}
    for queue in dict.fromkeys(key.queue for key in reached.entry_by_key):
        found |= brokers.streams(QueueSelection((queue,)), are_required=False)
    return found


def _batches(directory: Path) -> list[int]:
    """Return the numbers of the batches that have a file, in order."""
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def _entries(offsets: Path) -> dict[Key, PartitionOffset]:
    """Parse the file of a batch: a version, a line of Spark, then a JSON object for each gateway source."""
    found: dict[Key, PartitionOffset] = {}
    for line in offsets.read_text(encoding="utf-8").splitlines()[2:]:
        try:
            offset = json.loads(line)
        except ValueError:
            continue
        if isinstance(offset, dict):
            found |= decode(offset)
    return found


def _shown(batch: int | None) -> str:
    return "none" if batch is None else str(batch)
