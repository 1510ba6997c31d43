"""The records that say in which cell each virtual host is.

A record is written before its virtual host is made, and deleted after it, and by compare-and-set alone. So two leaders
never have the same virtual host, and a leader that died in between finds out at its next start what is left to do.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from gateway.cluster.errors import Unanswered
from gateway.cluster.metadata import NEVER, Metadata, MetadataEntry, MetadataWatch, Revision, compare_and_set

#: The keys of the records begin with this part.
VHOST: Final = "vhost"

#: How often a record is written while others write it at the same time.
_MOST_WRITES: Final = 3


class VhostState(Enum):
    """The state of a virtual host."""

    MADE = "made"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class VhostPlace:
    """The cell of a virtual host, and its state."""

    cell: int
    state: VhostState = VhostState.MADE


class MadeRecord(NamedTuple):
    """The record of a virtual host after ``make``; ``is_new``: that call has written it."""

    place: VhostPlace
    revision: Revision
    is_new: bool


class VhostRecords:
    """The records as one node knows them. ``changed`` is called with the name of one that has changed.

    ``revision``: this node knows of all writes up to it; ``reached`` is called when it has risen.
    """

    def __init__(self, metadata: Metadata, changed: Callable[[str], None] = lambda name: None) -> None:
        self.changed = changed
        self.reached: Callable[[], None] = lambda: None
        self.revision = NEVER
        self.is_current = False
        self._metadata = metadata
        self._entries: dict[str, MetadataEntry] = {}
        self._places: dict[str, VhostPlace] = {}
        self._current: Callable[[], None] = lambda: None
        self._watch: MetadataWatch | None = None

    def start(self, current: Callable[[], None] = lambda: None) -> None:
        """Begin to watch; ``current`` is called once all records are known."""
        self._current = current
        self._watch = self._metadata.watch((VHOST,), self)

    def close(self) -> None:
        """Stop: make no more calls."""
        if self._watch is not None:
            self._watch.stop()

    def place_of(self, name: str) -> VhostPlace | None:
        """Return the place of a virtual host; ``None`` if it does not exist."""
        return self._places.get(name)

    def cell_of(self, name: str) -> int | None:
        """Return the cell of a virtual host; ``None`` if it does not exist."""
        place = self._places.get(name)
        return None if place is None else place.cell

    def names_in(self, cell: int) -> list[str]:
        """Return the virtual hosts of a cell."""
        return [name for name, place in self._places.items() if place.cell == cell]

    def on_entry(self, entry: MetadataEntry) -> None:
        """Note a record."""
        self.revision = max(self.revision, entry.revision)
        if len(entry.key) == 2:
            self._note(entry)
        self.reached()

    def on_current(self) -> None:
        """Report that all records are known."""
        self.is_current = True
        self._current()

    def _note(self, entry: MetadataEntry) -> None:
        name = entry.key[1]
        known = self._entries.get(name)
        if known is not None and known.revision >= entry.revision:
            return
        self._entries[name] = entry
        place = None if entry.value is None else decode_place(entry.value)
        if place is None:
            self._places.pop(name, None)
        else:
            self._places[name] = place
        self.changed(name)

    # ---- Changes -------------------------------------------------------------------------------------------------

    async def make(self, name: str, cell: int) -> MadeRecord:
        """Write the record of a new virtual host; return what counts, which another node may have written.

        :raises Unanswered: if the engine does not answer.
        """
        for _ in range(_MOST_WRITES):
            known = self._places.get(name)
            if known is not None:
                return MadeRecord(known, self._entries[name].revision, False)
            place = VhostPlace(cell)
            revision = await self._written(name, place)
            if revision is not None:
                return MadeRecord(place, revision, True)
        raise Unanswered(f"the record of vhost '{name}' has another revision with each attempt to write it")

    async def mark_deleting(self, name: str) -> None:
        """Note that a virtual host is being deleted. :raises Unanswered: if the engine does not answer."""
        for _ in range(_MOST_WRITES):
            known = self._places.get(name)
            if known is None or known.state is VhostState.DELETING:
                return
            if await self._written(name, VhostPlace(known.cell, VhostState.DELETING)) is not None:
                return
        raise Unanswered(f"the record of vhost '{name}' has another revision with each attempt to write it")

    async def remove(self, name: str) -> None:
        """Delete the record of a virtual host that was deleted. :raises Unanswered: if the engine does not answer."""
        for _ in range(_MOST_WRITES):
            known = self._places.get(name)
            if known is None:
                return
            if await self._written(name, None) is not None:
                return
        raise Unanswered(f"the record of vhost '{name}' has another revision with each attempt to delete it")

    async def _written(self, name: str, place: VhostPlace | None) -> Revision | None:
        """Write or delete a record whose last revision is the known one; else read it, and return ``None``."""
        known = self._entries.get(name)
        expected = NEVER if known is None else known.revision
        value = None if place is None else encode_place(place)
        is_written, last = await compare_and_set(self._metadata, (VHOST, name), value, expected)
        if last is not None:
            self._note(last)
        return last.revision if is_written and last is not None else None


def encode_place(place: VhostPlace) -> bytes:
    """Return the record of a virtual host as JSON."""
    return json.dumps({"cell": place.cell, "state": place.state.value}).encode()


def decode_place(data: bytes) -> VhostPlace | None:
    """Return what a record says; ``None`` if it cannot be read. Unknown fields are ignored."""
    try:
        fields = json.loads(data)
        return VhostPlace(int(fields["cell"]), VhostState(fields["state"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
