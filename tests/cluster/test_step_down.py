"""A member whose node stops leading stops it once, whatever its store reports meanwhile."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.internet.testing import MemoryReactorClock

from gateway.config import Configured, Settings
from gateway.node.cluster.member import ClusterMember
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost


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


def test_a_store_that_fails_with_the_leadership_stops_the_node_once() -> None:
    configured = Configured(Settings(), {})
    member = ClusterMember(configured, MemoryReactorClock(), GarbageCollector(), lambda: configured, NodeHost())
    node, store = LeadingNode(), FailingStore()
    member.node, member._store = node, store  # type: ignore[assignment]  # what it leads with
    store.on_failure = lambda: member._step_down("the store failed")
    member.on_lost("the lease was not renewed")
    assert len(node.stops) == 1


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
