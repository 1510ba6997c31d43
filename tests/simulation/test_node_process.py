"""The process of a node: what ends with it, and when."""

import pytest

from gateway.simulation.findings import Findings
from gateway.simulation.network.network import Network
from gateway.simulation.process.disk import NodeDisk
from gateway.simulation.process.node_process import NodeProcess
from gateway.simulation.world.randomness import seeded_randomness
from gateway.simulation.world.world import World


def test_what_a_failed_store_had_not_on_disk_is_lost_when_its_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1)
    findings = Findings(world)
    process = NodeProcess(world, Network(world), NodeDisk(world), findings, {})
    ends = []
    process.on_failed_end = lambda: ends.append("lost")
    with seeded_randomness(1):
        ready = process.start()
        assert world.run(lambda: ready.is_done, 60.0)
        assert process.node is not None
        monkeypatch.setattr(process.node, "stop", lambda stopped: None)  # it takes long, as with many clients
        process.node.on_failure()
        assert process.has_failed
        assert not ends
        process.kill()
        process.kill()
    assert ends == ["lost"]
    assert not findings
