"""The progress of queries from their checkpoints, and their lag at the broker. Needs no Spark.

A checkpoint of Spark has ``metadata`` (the id of the query), ``offsets/N`` (the planned end of batch N) and
``commits/N`` (batch N is complete). Batches are read in the order of their numbers; incomplete files are ignored.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gateway_spark.client import Client, Partition
from gateway_spark.errors import OptionError
from gateway_spark.offsets import Key, positions
from gateway_spark.options import QueueSelection


@dataclass(frozen=True, slots=True)
class Reached:
    """The progress of one query: its last planned and its last complete batch, ``None`` before the first."""

    query: str
    planned: int | None
    done: int | None
    position_by_key: Mapping[Key, int]
    """The next offset of each partition after the last complete batch."""


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition in a status: ``lag`` is the number of unread messages, ``None`` if unknown."""

    key: Key
    position: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """The number of unread messages."""
        return None if self.end is None else max(0, self.end - self.position)


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
    position = _positions(checkpoint / "offsets" / str(finished[-1])) if finished else {}
    return Reached(query, planned[-1] if planned else None, done[-1] if done else None, position)


def lines(reached: Reached, client: Client | None) -> list[PartitionLine]:
    """Return the position of each partition, and with a client its lag."""
    ends = _ends(reached, client) if client is not None else {}
    return [PartitionLine(key, position, ends.get(key)) for key, position in sorted(reached.position_by_key.items())]


def described(checkpoint: Path, client: Client | None) -> Iterator[str]:
    """Yield the lines of a status for people. :raises OptionError: if the directory is not a checkpoint."""
    found = reached(checkpoint)
    yield f"{checkpoint}: query {found.query}, batch {_shown(found.done)} done, {_shown(found.planned)} planned"
    for line in lines(found, client):
        lag = "" if line.lag is None else f", of {line.end}: {line.lag} to go"
        yield f"  {line.key.queue}/{line.key.partition}: at {line.position}{lag}"


def _ends(reached: Reached, client: Client) -> dict[Key, int]:
    queues = tuple(dict.fromkeys(key.queue for key in reached.position_by_key))
    if not queues:
        return {}
    with closing(client):
        streams: Mapping[str, Mapping[str, Partition]] = client.streams(QueueSelection(queues))
    return {Key(queue, number): each.next for queue, parts in streams.items() for number, each in parts.items()}


def _batches(directory: Path) -> list[int]:
    """Return the numbers of the batches that have a file, in order."""
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def _positions(offsets: Path) -> dict[Key, int]:
    """Parse the file of a batch: a version, a line of Spark, then a JSON object for each gateway source."""
    found: dict[Key, int] = {}
    for line in offsets.read_text(encoding="utf-8").splitlines()[2:]:
        try:
            offset = json.loads(line)
        except ValueError:
            continue
        if isinstance(offset, dict):
            found |= positions(offset)
    return found


def _shown(batch: int | None) -> str:
    return "none" if batch is None else str(batch)
