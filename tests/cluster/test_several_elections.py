"""Several elections among the same nodes, one for each log: each has one leader, and the leaders are spread."""

from gateway.cluster.leadership import Contact, Leadership, Member, Members, Role, Standing
from gateway.cluster.queue_log import Claim, QueueId
from tests.cluster.faulty_ports import Faults, FaultyLogs, FaultyMetadata, NodeClock, start
from tests.cluster.nodes import Cluster

LOGS = (QueueId(1), QueueId(2), QueueId(3))


class SeveralTimes:
    """A node that stands for the election of each log."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.clock = NodeClock(cluster.clock)
        faults = Faults(cluster.clock, self.clock)
        metadata, logs = FaultyMetadata(cluster.metadata, faults), FaultyLogs(cluster.logs, faults)
        own, contact = Member(name, f"{name}1", (f"{name}.example", 7000)), Contact()
        self.members = Members(metadata, self.clock, start, own, contact, lambda error: None)
        standing = Standing(self.members)
        self.leaderships = {
            log: Leadership(metadata, logs, self.clock, start, self.members, contact, self, log, standing)
            for log in LOGS
        }

    def join(self) -> None:
        self.members.join()
        for leadership in self.leaderships.values():
            leadership.start()

    @property
    def led(self) -> list[QueueId]:
        """The logs that this node leads."""
        return [] if self.clock.is_dead else [log for log, each in self.leaderships.items() if each.check()]

    def on_elected(self, claim: Claim) -> None:
        """Do nothing."""

    def on_lost(self, reason: str) -> None:
        """Do nothing."""


def _cluster(*names: str) -> tuple[Cluster, dict[str, SeveralTimes]]:
    cluster = Cluster()
    nodes = {name: SeveralTimes(cluster, name) for name in names}
    for node in nodes.values():
        node.join()
    return cluster, nodes


def _settle(cluster: Cluster, nodes: dict[str, SeveralTimes], seconds: float) -> None:
    for _ in range(round(seconds / 0.1)):
        cluster.clock.advance(0.1)
        led = [log for node in nodes.values() for log in node.led]
        assert len(led) == len(set(led)), f"a log has two leaders: {led}"


def test_each_log_has_one_leader_and_each_node_leads_one() -> None:
    cluster, nodes = _cluster("a", "b", "c")
    _settle(cluster, nodes, 10)
    assert sorted(len(node.led) for node in nodes.values()) == [1, 1, 1]


def test_the_logs_of_a_dead_node_go_to_others_and_the_others_notice_nothing() -> None:
    cluster, nodes = _cluster("a", "b", "c")
    _settle(cluster, nodes, 10)
    dead = next(node for node in nodes.values() if QueueId(2) in node.led)
    living = {name: node for name, node in nodes.items() if node is not dead}
    before = {name: set(node.led) for name, node in living.items()}
    dead.clock.is_dead = True
    _settle(cluster, living, 15)
    assert sorted(log for node in living.values() for log in node.led) == list(LOGS)
    assert all(before[name] <= set(node.led) for name, node in living.items())


def test_a_record_shows_the_highest_role() -> None:
    cluster, nodes = _cluster("a")
    _settle(cluster, nodes, 20)
    node = nodes["a"]
    assert node.led == list(LOGS)
    node.leaderships[QueueId(1)].resign()
    _settle(cluster, nodes, 1)
    assert node.members.own.role is Role.LEADER
    assert not node.members.own.is_eligible
    node.leaderships[QueueId(1)].stand()
    assert node.members.own.is_eligible
    for leadership in node.leaderships.values():
        leadership.resign()
    assert node.members.own.role is Role.FOLLOWER
    assert not node.members.own.is_eligible


def test_a_successor_leads_next_although_it_leads_another_log() -> None:
    cluster, nodes = _cluster("a", "b")
    _settle(cluster, nodes, 20)
    leader = next(name for name, node in nodes.items() if QueueId(1) in node.led)
    other = "b" if leader == "a" else "a"
    nodes[leader].leaderships[QueueId(1)].resign(successor=other)
    _settle(cluster, nodes, 5)
    assert QueueId(1) in nodes[other].led
