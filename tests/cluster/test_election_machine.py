"""Three nodes of a cluster in any order of times, faults, stops, kills and resignations.

After each step at most one node leads, no batch of an old epoch is stored after one of a newer epoch, and a new leader
reads every record that was reported as stored (``tests/cluster/nodes.py``). Without faults there is soon one leader.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.cluster.nodes import Cluster, Node
from tests.effort import examples

#: A node by name, or the one that leads.
WHO = st.sampled_from(["leader", "leader", "follower", "a", "b", "c"])
FAULTS = st.sampled_from(["is_cut", "is_deaf", "loses_answers", "latency_s", "pause", "none"])
LATENCIES_S = st.sampled_from([0.1, 0.4, 1.0, 3.0, 4.5, 6.0])
TENTHS = st.integers(0, 120)


class ElectionMachine(RuleBasedStateMachine):
    """Nodes that fail, and an engine that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        for name in "abc":
            self.cluster.node(name)
        self.cluster.advance(3)

    def node(self, who: str) -> Node:
        nodes = self.cluster.nodes
        chosen = [node for node in nodes.values() if who in (node.name, "leader" if node.leads else "follower")]
        return (chosen or [nodes["a"]])[0]

    @rule(tenths=TENTHS)
    def advance(self, tenths: int) -> None:
        self.cluster.advance(tenths / 10)

    @rule(who=WHO, fault=FAULTS, latency_s=LATENCIES_S, tenths=TENTHS)
    def fail(self, who: str, fault: str, latency_s: float, tenths: int) -> None:
        node = self.node(who)
        if fault == "pause":
            node.pause()
        elif fault == "latency_s":
            node.faults.latency_s = latency_s
        elif fault != "none":
            setattr(node.faults, fault, True)
        self.cluster.advance(tenths / 10)

    @rule(who=WHO, tenths=TENTHS)
    def heal(self, who: str, tenths: int) -> None:
        node = self.node(who)
        node.resume()
        self.cluster.check()
        node.faults.heal()
        self.cluster.advance(tenths / 10)

    @rule(who=WHO, tenths=TENTHS)
    def restart(self, who: str, tenths: int) -> None:
        node = self.node(who)
        node.kill()
        self.cluster.advance(tenths / 10)
        self.cluster.node(node.name)

    @rule(who=WHO, tenths=st.integers(0, 20))
    def resign(self, who: str, tenths: int) -> None:
        node = self.node(who)
        if not node.clock.is_paused:
            node.leadership.resign()
            self.cluster.advance(tenths / 10)
            node.leadership.stand()

    def teardown(self) -> None:
        nodes = self.cluster.nodes
        for node in nodes.values():
            node.resume()
            node.faults.heal()
        self.cluster.advance(6)  # the longest call ends
        for node in list(nodes.values()):
            if node.refusals:
                node.kill()
                self.cluster.node(node.name)
        self.cluster.advance(20)
        leader = self.cluster.leader()
        self.cluster.advance(10)
        assert self.cluster.leader() is leader
        for node in nodes.values():
            told = [report.split()[0] for report in node.reports if report.startswith(("elected", "lost"))]
            assert told[::2] == ["elected"] * len(told[::2]), f"{node.name}: {node.reports}"
            assert told[1::2] == ["lost:"] * len(told[1::2]), f"{node.name}: {node.reports}"
            assert len(told) % 2 == (node is leader)


ElectionTest = ElectionMachine.TestCase
ElectionTest.settings = settings(max_examples=examples(50), stateful_step_count=25, deadline=None)
