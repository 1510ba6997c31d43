"""The nodes that operators have put into maintenance: a record for each, which every node sees.

A record names one start of a process, so a node that is restarted is in service again, as in RabbitMQ.
"""

import json
from collections.abc import Callable
from typing import Final

from gateway.cluster.errors import Unanswered
from gateway.cluster.leadership.member import Member
from gateway.cluster.metadata import NEVER, Metadata, MetadataEntry, MetadataWatch, compare_and_set

#: The keys of the records begin with this part.
MAINTENANCE: Final = "maintenance"

#: How often a record is written while others write it at the same time.
_MOST_WRITES: Final = 3


class MaintenanceRecords:
    """The records as one node knows them. ``changed`` is called with the name of a node whose record has changed."""

    def __init__(self, metadata: Metadata, changed: Callable[[str], None]) -> None:
        self._metadata = metadata
        self._changed = changed
        self._entries: dict[str, MetadataEntry] = {}
        self._watch: MetadataWatch | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._watch = self._metadata.watch((MAINTENANCE,), self)

    def close(self) -> None:
        """Stop: make no more calls."""
        if self._watch is not None:
            self._watch.stop()

    def holds_for(self, member: Member) -> bool:
        """Whether this start of a node is in maintenance."""
        entry = self._entries.get(member.name)
        return entry is not None and entry.value is not None and decode_instance(entry.value) == member.instance

    async def write(self, member: Member) -> None:
        """Put this start of a node into maintenance. :raises Unanswered: if the engine does not answer."""
        await self._set(member.name, encode_instance(member.instance))

    async def delete(self, name: str) -> None:
        """Delete the record of a node. :raises Unanswered: if the engine does not answer."""
        await self._set(name, None)

    def on_entry(self, entry: MetadataEntry) -> None:
        """Note the record of a node."""
        if len(entry.key) == 2:
            self._note(entry)

    def on_current(self) -> None:
        """Do nothing: each record counts as soon as it is known."""

    def _note(self, entry: MetadataEntry) -> None:
        name = entry.key[1]
        known = self._entries.get(name)
        if known is None or known.revision < entry.revision:
            self._entries[name] = entry
            self._changed(name)

    async def _set(self, name: str, value: bytes | None) -> None:
        for _ in range(_MOST_WRITES):
            known = self._entries.get(name)
            if value is None and (known is None or known.value is None):
                return
            expected = NEVER if known is None else known.revision
            is_written, last = await compare_and_set(self._metadata, (MAINTENANCE, name), value, expected)
            if last is not None:
                self._note(last)
            if is_written:
                return
        raise Unanswered(f"the maintenance of {name} has another revision with each attempt to write it")


def encode_instance(instance: str) -> bytes:
    """Return the record for a start of a process as JSON."""
    return json.dumps({"instance": instance}).encode()


def decode_instance(data: bytes) -> str | None:
    """Return the start of a process that a record names; ``None`` if it cannot be read."""
    try:
        return str(json.loads(data)["instance"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
