"""Nodes in maintenance: the records of them, and the election without them or in favour of one."""

import pytest

from gateway.cluster.errors import Outdated, Unanswered
from gateway.cluster.leadership import LEASE_KEY, MaintenanceRecords, Member
from gateway.cluster.leadership.lease import decode_lease
from gateway.cluster.metadata import NEVER
from gateway.testing.clock import FakeClock
from gateway_memory.cluster import MemoryMetadata
from tests.cluster.faulty_ports import start
from tests.cluster.nodes import Cluster, takes_over
from tests.cluster.scripted_logs import run

A, A_RESTARTED = (Member("a", instance, ("a.example", 7000)) for instance in ("i1", "i2"))


class Records(MaintenanceRecords):
    """Records that note what was reported."""

    def __init__(self, metadata: MemoryMetadata) -> None:
        super().__init__(metadata, self.note)
        self.reports: list[tuple[str, bool]] = []
        self.start()

    def note(self, name: str) -> None:
        self.reports.append((name, self.holds_for(A)))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def metadata(clock: FakeClock) -> MemoryMetadata:
    return MemoryMetadata(clock)


def test_each_node_sees_that_one_is_drained_until_it_is_revived_or_restarted(
    clock: FakeClock, metadata: MemoryMetadata
) -> None:
    first, second = Records(metadata), Records(metadata)
    run(first.write(A))
    clock.advance(1)
    assert (first.holds_for(A), second.holds_for(A), second.holds_for(A_RESTARTED)) == (True, True, False)
    run(second.delete("a"))
    run(second.delete("a"))
    clock.advance(1)
    assert first.reports == second.reports == [("a", True), ("a", False)]
    run(first.write(A))
    run(second.write(A_RESTARTED))
    clock.advance(1)
    assert (first.holds_for(A), first.holds_for(A_RESTARTED)) == (False, True)
    first.close()
    second.close()
    run(second.delete("a"))
    clock.advance(1)
    assert first.holds_for(A_RESTARTED), "a closed watch reports nothing"


def test_a_record_that_others_write_all_the_time_is_unanswered(clock: FakeClock) -> None:
    class Contended(MemoryMetadata):
        async def put(self, key, value, expected):  # type: ignore[no-untyped-def]
            raise Outdated("another revision")

    with pytest.raises(Unanswered):
        run(Records(Contended(clock)).write(A))


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff"])
def test_a_record_that_cannot_be_read_drains_no_node(clock: FakeClock, metadata: MemoryMetadata, data: bytes) -> None:
    records = Records(metadata)
    run(metadata.put(("maintenance", "a"), data, NEVER))
    clock.advance(1)
    assert not records.holds_for(A)


@pytest.mark.parametrize("named", ["first", "second"])
def test_the_successor_that_is_named_leads_at_once(named: str) -> None:
    cluster = Cluster()
    for name in "abc":
        cluster.node(name)
    cluster.advance(3)
    leader = cluster.leader()
    others = [node for node in cluster.nodes.values() if node is not leader]
    successor = others[named == "second"]
    leader.leadership.resign(successor=successor.name)
    assert takes_over(cluster, 2) <= 0.6
    assert cluster.leader() is successor
    leader.leadership.stand()
    cluster.advance(20)
    assert cluster.leader() is successor


@pytest.mark.parametrize("fault", ["dead", "drained"])
def test_another_node_leads_if_the_successor_cannot(fault: str) -> None:
    cluster = Cluster()
    for name in "abc":
        cluster.node(name)
    cluster.advance(3)
    leader = cluster.leader()
    successor, other = (node for node in cluster.nodes.values() if node is not leader)
    if fault == "dead":
        successor.kill()
    else:
        successor.leadership.resign()
        cluster.advance(1)
    leader.leadership.resign(successor=successor.name)
    takes_over(cluster, 10)
    assert cluster.leader() is other
    entry = run(cluster.metadata.get(LEASE_KEY))
    assert entry is not None
    assert entry.value is not None
    lease = decode_lease(entry.value)
    assert lease is not None
    assert lease.successor == "", "it holds for one hand-over"


def test_the_record_of_another_node_is_deleted_and_never_the_own_one() -> None:
    cluster = Cluster()
    for name in "ab":
        cluster.node(name)
    cluster.advance(2)
    cluster.nodes["b"].kill()
    cluster.advance(10)
    members = cluster.nodes["a"].members
    for name in ("unknown", "a", "b"):
        start(members.forget(name))
    cluster.advance(1)
    assert [member.name for member in members.known] == ["a"]
