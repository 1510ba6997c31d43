"""Requests to the leaders of cells to hand over, as records: an operator's request reaches the first cell's leader."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.cluster.errors import Unanswered
from gateway.cluster.metadata import NEVER, Key, Metadata, MetadataEntry, MetadataWatch, Revision, compare_and_set
from gateway.cluster.queue_log import Epoch

#: The keys of the records begin with this part; the number of the cell follows.
HANDOVER: Final = "handover"

#: How often a record is written while others write it at the same time.
_MOST_WRITES: Final = 3


@dataclass(frozen=True, slots=True)
class Handover:
    """The request to the leader of an epoch to let a successor lead; any willing node if its name is empty."""

    epoch: Epoch
    successor: str


class HandoverRecords:
    """The records as one node sees them. ``asked`` is called with the cell and each request that comes."""

    def __init__(self, metadata: Metadata, asked: Callable[[int, Handover], None]) -> None:
        self._metadata = metadata
        self._asked = asked
        self._revisions: dict[Key, Revision] = {}
        self._watch: MetadataWatch | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._watch = self._metadata.watch((HANDOVER,), self)

    def close(self) -> None:
        """Stop: make no more calls."""
        if self._watch is not None:
            self._watch.stop()

    async def ask(self, cell: int, handover: Handover) -> None:
        """Ask the leader of a cell to hand over. :raises Unanswered: if the engine does not answer."""
        key: Key = (HANDOVER, str(cell))
        for _ in range(_MOST_WRITES):
            expected = self._revisions.get(key, NEVER)
            is_written, last = await compare_and_set(self._metadata, key, encode_handover(handover), expected)
            if is_written:
                return
            if last is not None:
                self._revisions[key] = last.revision
        raise Unanswered(f"the request for cell {cell} has another revision with each attempt to write it")

    def on_entry(self, entry: MetadataEntry) -> None:
        """Report a request."""
        self._revisions[entry.key] = entry.revision
        handover = None if entry.value is None else decode_handover(entry.value)
        if len(entry.key) == 2 and entry.key[1].isdecimal() and handover is not None:
            self._asked(int(entry.key[1]), handover)

    def on_current(self) -> None:
        """Do nothing: a request for an epoch that has ended is ignored."""


def encode_handover(handover: Handover) -> bytes:
    """Return a request as JSON."""
    return json.dumps({"epoch": handover.epoch, "successor": handover.successor}).encode()


def decode_handover(data: bytes) -> Handover | None:
    """Return a request; ``None`` if it cannot be read. Unknown fields are ignored."""
    try:
        fields = json.loads(data)
        return Handover(Epoch(int(fields["epoch"])), str(fields["successor"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
