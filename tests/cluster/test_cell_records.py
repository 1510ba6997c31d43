"""The records of cells: each virtual host has one place, and no old record of a user replaces a new one."""

from collections.abc import Iterator, Mapping

import pytest

from gateway.cluster.cells import (
    Handover,
    HandoverRecords,
    SharedRecords,
    SharedWriter,
    VhostPlace,
    VhostRecords,
    VhostState,
    cell_count,
    moves,
)
from gateway.cluster.cells.shared_records import SharedRecord, encode_shared
from gateway.cluster.metadata import NEVER, Key
from gateway.cluster.queue_log import Epoch
from gateway.testing.clock import FakeClock
from gateway_memory.cluster import MemoryMetadata
from tests.cluster.faulty_ports import start
from tests.cluster.scripted_logs import run

ALICE: Key = ("user", "alice")
BOB: Key = ("user", "bob")


class Engine:
    """An engine in memory, and the records as nodes know them."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metadata = MemoryMetadata(self.clock)

    def vhosts(self) -> VhostRecords:
        records = VhostRecords(self.metadata)
        records.start()
        self.settle()
        return records

    def shared(self) -> SharedRecords:
        records = SharedRecords(self.metadata)
        records.start()
        self.settle()
        return records

    def settle(self) -> None:
        for _ in range(20):
            self.clock.advance(0.1)


class Source:
    """The entities of a leader."""

    def __init__(self, entities: Mapping[Key, bytes]) -> None:
        self.entities = dict(entities)

    def entity(self, key: Key) -> bytes | None:
        return self.entities.get(key)

    def keys(self) -> Iterator[Key]:
        yield from list(self.entities)


@pytest.fixture
def engine() -> Engine:
    return Engine()


def _writer(engine: Engine, records: SharedRecords, epoch: int, entities: Mapping[Key, bytes]) -> SharedWriter:
    return SharedWriter(records, Source(entities), Epoch(epoch), engine.clock, start)


def _compare(writer: SharedWriter) -> None:
    for _ in writer.comparing():
        pass


def _entities(records: SharedRecords) -> dict[Key, bytes]:
    return {key: record.entity for key, record in records.by_key.items()}


def test_the_number_of_cells_grows_and_does_not_shrink(engine: Engine) -> None:
    assert run(cell_count(engine.metadata, 1)) == 1
    assert run(cell_count(engine.metadata, 3)) == 3
    assert run(cell_count(engine.metadata, 1)) == 3


def test_a_virtual_host_has_one_place_however_many_nodes_make_it(engine: Engine) -> None:
    first, second = engine.vhosts(), engine.vhosts()
    assert run(first.make("orders", 2))[0] == VhostPlace(2)
    assert run(second.make("orders", 3))[0] == VhostPlace(2), "it has not seen the first write yet"
    engine.settle()
    assert (first.cell_of("orders"), second.cell_of("orders")) == (2, 2)
    assert second.names_in(2) == ["orders"]
    assert first.revision == second.revision


def test_a_virtual_host_is_marked_before_it_goes_and_can_be_made_in_another_cell(engine: Engine) -> None:
    first, second = engine.vhosts(), engine.vhosts()
    run(first.make("orders", 2))
    engine.settle()
    run(second.mark_deleting("orders"))
    assert run(first.make("orders", 3))[0].cell == 2
    engine.settle()
    assert first.place_of("orders") == VhostPlace(2, VhostState.DELETING)
    run(second.remove("orders"))
    engine.settle()
    assert first.cell_of("orders") is None
    run(first.make("orders", 3))
    engine.settle()
    assert second.cell_of("orders") == 3


def test_a_record_that_cannot_be_read_is_no_place(engine: Engine) -> None:
    run(engine.metadata.put(("vhost", "odd"), b"{", NEVER))
    assert engine.vhosts().cell_of("odd") is None


def test_a_new_leader_writes_what_differs_and_deletes_what_it_does_not_have(engine: Engine) -> None:
    records = engine.shared()
    _compare(_writer(engine, records, 5, {ALICE: b"1", BOB: b"1"}))
    engine.settle()
    other = engine.shared()
    assert _entities(other) == {ALICE: b"1", BOB: b"1"}
    before = other.revision_of(ALICE)
    _compare(_writer(engine, engine.shared(), 9, {ALICE: b"1"}))
    engine.settle()
    assert _entities(other) == {ALICE: b"1"}
    assert other.revision_of(ALICE) == before, "what is the same is not written again"


def test_a_change_is_reported_when_it_is_written(engine: Engine) -> None:
    records = engine.shared()
    writer = _writer(engine, records, 5, {ALICE: b"1"})
    written: list[int] = []
    writer.write(ALICE)
    writer.when_written(written.append)
    engine.settle()
    assert written == [records.revision_of(ALICE)]
    writer.when_written(written.append)
    assert written[1] == written[0]


def test_the_late_write_of_a_deposed_leader_is_overruled_and_repaired(engine: Engine) -> None:
    own = engine.shared()
    writer = _writer(engine, own, 9, {ALICE: b"new"})
    own.changed = writer.repair
    writer.write(ALICE)
    engine.settle()
    late = encode_shared(SharedRecord(Epoch(5), b"old"))
    other = engine.shared()
    run(engine.metadata.put(("access", *ALICE), late, own.revision_of(ALICE)))
    engine.settle()
    assert _entities(other) == {ALICE: b"new"}
    assert _entities(engine.shared()) == {ALICE: b"new"}, "the record itself was written again"


def test_a_deposed_leader_stops_at_the_record_of_its_successor(engine: Engine) -> None:
    old_records = engine.shared()
    old = _writer(engine, old_records, 5, {ALICE: b"old"})
    old.write(ALICE)
    engine.settle()
    _compare(_writer(engine, engine.shared(), 9, {ALICE: b"new"}))
    old.write(ALICE)
    engine.settle()
    assert _entities(engine.shared()) == {ALICE: b"new"}


def test_a_request_to_hand_over_reaches_every_node_and_can_be_repeated(engine: Engine) -> None:
    asked: list[tuple[int, Handover]] = []
    first, second = (HandoverRecords(engine.metadata, lambda *request: asked.append(request)) for _ in range(2))
    first.start()
    second.start()
    engine.settle()
    run(first.ask(2, Handover(Epoch(5), "b")))
    run(second.ask(2, Handover(Epoch(6), "")))
    engine.settle()
    assert asked.count((2, Handover(Epoch(6), ""))) == 2
    assert {cell for cell, _ in asked} == {2}


@pytest.mark.parametrize(
    ("leaders", "nodes", "expected"),
    [
        ({1: "a", 2: "b", 3: "c"}, "abc", {}),
        ({1: "a", 2: "a"}, "ab", {2: "b"}),
        ({1: "a", 2: "a", 3: "a", 4: "a"}, "ab", {4: "b", 3: "b"}),
        ({1: "a", 2: "a", 3: "a"}, "abc", {3: "b", 2: "c"}),
        ({1: "a"}, "abc", {}),
        ({1: "a", 2: "gone"}, "ab", {}),
        ({1: "a"}, "", {}),
    ],
)
def test_few_cells_move_until_each_node_leads_as_many(
    leaders: dict[int, str], nodes: str, expected: dict[int, str]
) -> None:
    assert moves(leaders, list(nodes)) == expected
