"""The parts of a single node's data for several cells have everything once, and of each virtual host all or nothing."""

from gateway.cluster.replication.local_store import DurableRecord
from gateway.cluster.replication.migration_parts import MigrationParts
from gateway.kernel.journal.changes import Appended, Enqueued, Put, Sealed, Stored, StreamSegment, Truncated
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.progress import CleanStopRecord, StreamOffsetRecord
from gateway.kernel.journal.records.topology import ParameterRecord, QueueRecord
from gateway.kernel.journal.records.workbench import UndoRecord, UndoRowsRecord
from gateway.testing.store_session import message_with, vhost_record

VHOSTS = ("/", "a", "b", "c")


def _queue(vhost: str, id: int) -> QueueRecord:
    return QueueRecord(vhost, f"q{id}", id, False, {})


ENTITIES: dict[int, list[Entity]] = {
    1: [
        *(vhost_record(name) for name in ("/", "b")),
        UserRecord("anna", "hash", "sha256", [], {}),
        PermissionRecord("a", "anna", "", "", ""),
        AuditRecord(1, 0, "anna", "", "HTTP", "queue.created", "a", "q", None, None, {}),
        ParameterRecord("", "", "colour", "red"),
        _queue("/", 1),
        _queue("b", 3),
        StreamOffsetRecord("b", "q3", "x", 5),
    ],
    2: [
        *(vhost_record(name) for name in ("a", "c")),
        ParameterRecord("a", "shovel", "s", {}),
        _queue("a", 2),
        UndoRecord(7, "c", "q", "delete", "", "", "anna", 0, 0, 9),
        UndoRowsRecord(7, 0, b""),
    ],
}
MESSAGES: dict[int, list[DurableRecord]] = {
    1: [
        Stored(message_with(11, b"")),
        Enqueued(1, 100, 11, 0),
        Truncated(3, 0),
        Appended(3, 0, 0, b"", message_with(0, b"")),
        Sealed(StreamSegment(3, 0, 1, 1, 0, 0, True)),
    ],
    2: [Stored(message_with(12, b"")), Enqueued(2, 102, 12, 0), Enqueued(9, 103, 14, 0), Stored(message_with(14, b""))],
}


def parts(cells: tuple[int, ...] = (1, 2), present: dict[str, int] | None = None) -> MigrationParts:
    """Return the parts, which know all records."""
    found = MigrationParts(cells, present or {})
    for entity in (*ENTITIES[1], *ENTITIES[2]):
        found.note(Put(entity))
    for record in (*MESSAGES[2], *MESSAGES[1], Enqueued(1, 104, 13, 0), Enqueued(2, 105, 13, 0)):
        if isinstance(record, Enqueued):
            found.note(record)
    found.sort()
    return found


def test_each_record_is_in_the_cell_of_its_virtual_host() -> None:
    found = parts()
    assert found.cell_by_vhost == {"/": 1, "a": 2, "b": 1, "c": 2}
    for cell in (1, 2):
        for record in (*map(Put, ENTITIES[cell]), *MESSAGES[cell]):
            assert [each for each in (1, 2) if found.has(each, record)] == [cell], record


def test_what_several_cells_need_is_in_each() -> None:
    for record in (Put(CleanStopRecord("a", 5)), Stored(message_with(13, b""))):
        assert all(parts().has(cell, record) for cell in (1, 2))
    assert not any(parts().has(cell, Stored(message_with(99, b""))) for cell in (1, 2))


def test_virtual_hosts_stay_where_an_earlier_attempt_has_placed_them() -> None:
    assert parts(present={"a": 1, "c": 1, "gone": 2}).cell_by_vhost == {"a": 1, "c": 1, "/": 2, "b": 2}


def test_one_cell_has_everything() -> None:
    assert set(parts((1,)).cell_by_vhost.values()) == {1}
