"""The parts of a single node's data for several cells: each virtual host is in one, everything else in the first."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from gateway.cluster.replication.local_store import DurableRecord
from gateway.kernel.journal.changes import Change, Enqueued, Put, Sealed, Stored
from gateway.kernel.journal.records.access import (
    PermissionRecord,
    SecretRecord,
    TopicPermissionRecord,
    UserRecord,
)
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.progress import CleanStopRecord
from gateway.kernel.journal.records.topology import VhostRecord
from gateway.kernel.journal.records.workbench import UndoRecord, UndoRowsRecord

#: The cell of everything that has no virtual host.
FIRST: Final = 1

#: What is in the first cell, even if it names a virtual host.
_OF_FIRST: Final = (UserRecord, SecretRecord, PermissionRecord, TopicPermissionRecord, AuditRecord)


class MigrationParts:
    """Says to which of the ``cells`` a record goes. ``present`` has the virtual hosts that an earlier attempt placed.

    ``note`` must get what the source has first: the entities before the messages.
    """

    def __init__(self, cells: Sequence[int], present: Mapping[str, int]) -> None:
        self._cells = cells
        self._present = present
        self._vhosts: list[str] = []
        self._vhost_by_id: dict[int, str] = {}
        self._vhost_by_undo: dict[int, str] = {}
        #: The ids of contents, in the order of their ids, for each cell.
        self._contents: dict[int, array[int]] = {cell: array("Q") for cell in cells}

    @cached_property
    def cell_by_vhost(self) -> Mapping[str, int]:
        """The cell of each virtual host: the one with the fewest, in the order of their names."""
        found = {name: self._present[name] for name in self._vhosts if name in self._present}
        counts = {cell: list(found.values()).count(cell) for cell in self._cells}
        for name in sorted(set(self._vhosts) - found.keys()):
            found[name] = min(self._cells, key=lambda cell: (counts[cell], cell))
            counts[found[name]] += 1
        return found

    def note(self, record: Change | DurableRecord) -> None:
        """Note a record of the source."""
        if isinstance(record, Put):
            self._note_entity(record.entity)
        elif isinstance(record, Enqueued) and len(self._cells) > 1:
            contents = self._contents[self._cell_of_id(record.queue_id)]
            if not contents or contents[-1] != record.message_id:
                contents.append(record.message_id)

    def _note_entity(self, entity: Entity) -> None:
        if isinstance(entity, VhostRecord):
            self._vhosts.append(entity.name)
        elif isinstance(entity, UndoRecord):
            self._vhost_by_undo[entity.number] = entity.vhost
        if entity.messages_id:
            self._vhost_by_id[entity.messages_id] = str(getattr(entity, "vhost", ""))

    def sort(self) -> None:
        """Prepare for ``has``, after the last ``note``."""
        self._contents = {cell: array("Q", sorted(ids)) for cell, ids in self._contents.items()}

    def has(self, cell: int, record: DurableRecord) -> bool:
        """Whether a record belongs to a cell. A content may belong to several."""
        if isinstance(record, Put):
            return isinstance(record.entity, CleanStopRecord) or self._cell_of(record.entity) == cell
        if isinstance(record, Stored):
            ids = self._contents[cell]
            at = bisect_left(ids, record.message_id)
            return at < len(ids) and ids[at] == record.message_id
        if isinstance(record, Enqueued):
            return self._cell_of_id(record.queue_id) == cell
        return self._cell_of_id(record.segment.stream_id if isinstance(record, Sealed) else record.stream_id) == cell

    def _cell_of(self, entity: Entity) -> int:
        if isinstance(entity, _OF_FIRST):
            return FIRST
        if isinstance(entity, VhostRecord):
            return self._cell_of_vhost(entity.name)
        if isinstance(entity, UndoRowsRecord):
            return self._cell_of_vhost(self._vhost_by_undo.get(entity.undo, ""))
        return self._cell_of_vhost(str(getattr(entity, "vhost", "")))

    def _cell_of_id(self, messages_id: int) -> int:
        return self._cell_of_vhost(self._vhost_by_id.get(messages_id, ""))

    def _cell_of_vhost(self, vhost: str) -> int:
        return self.cell_by_vhost.get(vhost, FIRST)
