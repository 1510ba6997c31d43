"""A cell whose node stops leading stops it once, whatever its store reports meanwhile."""

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock

from gateway.cluster.leadership import LEADER_LOG, Contact, Member, Members, Standing
from gateway.config import Configured, Settings
from gateway.net.clock import ReactorClock
from gateway.node.cluster.configuration import MemberConfiguration
from gateway.node.cluster.engine import Engine
from gateway.node.cluster.member import ClusterMember, furthest_behind
from gateway.node.cluster.member_cell import CellHome, MemberCell
from gateway.node.cluster.member_ports import MemberPorts
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway_memory.cluster import MemoryBus, MemoryMetadata, MemoryQueueLogs
from tests.cluster.faulty_ports import start


class LeadingNode:
    """A node that counts its stops."""

    def __init__(self) -> None:
        self.stops: list[Callable[[], None]] = []

    def stop(self, done: Callable[[], None]) -> None:
        self.stops.append(done)


class FailingStore:
    """A store that reports its failure at once, as a node hears it."""

    def __init__(self) -> None:
        self.on_failure: Callable[[], None] = lambda: None

    def fail(self, reason: str) -> None:
        self.on_failure()


def cell_in_memory(data: Path) -> MemberCell:
    """Return a cell on an engine in memory."""
    settings = Settings(data=data)
    reactor: Any = MemoryReactorClock()
    clock = ReactorClock(reactor, lambda: None)
    metadata, logs = MemoryMetadata(clock), MemoryQueueLogs(clock)
    contact = Contact()
    members = Members(metadata, clock, start, Member("a", "1", ("", 0)), contact, lambda error: None)
    configured = Configured(settings, {})
    home = CellHome(
        reactor=reactor,
        clock=clock,
        collector=GarbageCollector(),
        configuration=MemberConfiguration(configured, lambda: configured),
        ports=MemberPorts(settings, reactor, clock, lambda cell: None, str),
        engine=Engine(metadata, logs, MemoryBus(clock), lambda: None),
        members=members,
        contact=contact,
        standing=Standing(members),
        host=lambda cell: NodeHost(),
        seat=lambda cell, claim: None,
        on_node=lambda node: None,
        on_stop=lambda: None,
        progress=lambda text: None,
        may_stand=lambda: True,
    )
    return MemberCell(LEADER_LOG, home)


def test_a_store_that_fails_with_the_leadership_stops_the_node_once(tmp_path: Path) -> None:
    cell = cell_in_memory(tmp_path)
    node, store = LeadingNode(), FailingStore()
    cell.node, cell.store = node, store  # type: ignore[assignment]  # what it leads with
    store.on_failure = lambda: cell.step_down("the store failed")
    cell.on_lost("the lease was not renewed")
    assert len(node.stops) == 1


def test_the_figures_of_a_member_are_those_of_the_copy_that_is_furthest_behind() -> None:
    first: Mapping[str, int] = {"copy_behind_batches": 3, "copy_behind_ms": 10}
    second: Mapping[str, int] = {"copy_behind_batches": 1, "copy_behind_ms": 20}
    assert furthest_behind([first, second]) == {"copy_behind_batches": 3, "copy_behind_ms": 20}
    assert furthest_behind([first, {}]) == {}


def test_the_status_of_the_service_says_why_a_node_is_cut_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    configured = Configured(Settings(), {})
    member = ClusterMember(configured, MemoryReactorClock(), GarbageCollector(), lambda: configured, NodeHost())
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        member._contact.unanswered("no answer within 2 s")
        assert manager.recv(1000) == b"STATUS=this node has no majority of the cluster: no answer within 2 s"
        member._contact.answered()
        assert manager.recv(1000) == b"STATUS="
