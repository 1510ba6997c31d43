"""A member whose node stops leading stops it once, whatever its store reports meanwhile."""

from collections.abc import Callable

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
