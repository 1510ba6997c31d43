"""Operators of a cluster: nodes are drained and revived, the leadership is moved, a dead node is forgotten."""

import json
import time
import urllib.error

import pytest

from tests.clusters.accounting import Accounting
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.interruption import interruption_s
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.management_client import get, request
from tests.waiting import wait_until

#: The longest interruption that is owed, in seconds, and what a busy machine adds to it here.
OWED_S = 2.0
_BUSY_S = 15.0


def drain(cluster: GatewayCluster, node: ClusterNode) -> None:
    """Drain a node, and wait until another one leads, and all say that it is drained.

    A leader is not drained before another node could lead: the others may have started a moment ago.
    """
    wait_until(lambda: is_accepted(cluster.leader(), f"cluster/nodes/{node.name}/maintenance"), cluster.logs)
    wait_until(lambda: is_drained(cluster, node), cluster.logs)


def is_accepted(leader: ClusterNode, path: str) -> bool:
    """Send a PUT request; return whether the state of the cluster permits it now."""
    try:
        request(leader, "PUT", path, {})
    except urllib.error.HTTPError as refused:
        if refused.code != 400:
            raise
        return False
    return True


def is_drained(cluster: GatewayCluster, node: ClusterNode) -> bool:
    """Whether the leader shows a node as drained."""
    leader = cluster.leader()
    return leader is not node and get(leader, f"nodes/{node.name}")["being_drained"] is True


def revive(cluster: GatewayCluster, node: ClusterNode) -> None:
    """Put a node into service again, and wait until it serves clients."""
    request(cluster.leader(), "DELETE", f"cluster/nodes/{node.name}/maintenance")
    wait_until(lambda: is_served(node), cluster.logs)


def is_served(node: ClusterNode) -> bool:
    """Whether a node takes clients."""
    try:
        with AmqpLink(node.addresses["amqp"], 2.0):
            return True
    except OSError:
        return False


def refusal(node: ClusterNode, method: str, path: str, fields: object = None) -> tuple[int, str]:
    """Return the status and the reason of a request that must fail."""
    with pytest.raises(urllib.error.HTTPError) as raised:
        request(node, method, path, fields)
    return raised.value.code, str(json.load(raised.value)["reason"])


def test_a_drained_follower_tells_its_clients_and_takes_none_until_it_is_revived(cluster: GatewayCluster) -> None:
    follower, leader = cluster.follower(), cluster.leader()
    with AmqpLink(follower.addresses["amqp"]) as forwarded, AmqpLink(leader.addresses["amqp"]) as direct:
        drain(cluster, follower)
        with pytest.raises(ConnectionResetError, match=r"320 .*Node was put into maintenance mode"):
            forwarded.next_method()
        direct.declare("still-served")
    assert not is_served(follower)
    assert get(follower, "cluster")["leader"] == leader.name, "the API of a drained node is open"
    code, reason = refusal(follower, "PUT", "cluster/leader", {"node": follower.name})
    assert (code, reason) == (400, f"node {follower.name} does not stand for election now; revive it first")
    revive(cluster, follower)
    assert not get(leader, f"nodes/{follower.name}")["being_drained"]
    assert cluster.leader() is leader


def test_the_last_node_that_could_lead_is_not_drained(cluster: GatewayCluster) -> None:
    leader = cluster.leader()
    others = [node for node in cluster.nodes if node is not leader]
    for node in others:
        drain(cluster, node)
    expected = (400, "no other node can lead: start one, or revive one that is drained")
    assert refusal(leader, "PUT", f"cluster/nodes/{leader.name}/maintenance", {}) == expected
    assert refusal(leader, "PUT", "cluster/leader", {}) == expected
    for node in others:
        revive(cluster, node)
    assert refusal(leader, "PUT", "maintenance", {})[0] == 400
    assert refusal(leader, "POST", "rebalance/queues", {})[0] == 400


def test_the_leadership_goes_to_the_node_that_is_named(cluster: GatewayCluster) -> None:
    for target in [node for node in cluster.nodes if node is not cluster.leader()]:
        epoch = cluster.leader().led_epoch
        request(cluster.leader(), "PUT", "cluster/leader", {"node": target.name})
        assert cluster.leader(after=epoch) is target
    wait_until(lambda: len([m for m in get(target, "cluster")["members"] if m["alive"]]) == 3, cluster.logs)


def test_a_dead_node_is_forgotten_and_a_live_one_is_not(cluster: GatewayCluster) -> None:
    follower, leader = cluster.follower(), cluster.leader()
    assert refusal(leader, "DELETE", f"cluster/nodes/{follower.name}") == (
        400,
        f"node {follower.name} is alive; stop it first",
    )
    assert refusal(leader, "DELETE", "cluster/nodes/unknown")[0] == 404
    follower.kill()

    def is_dead() -> bool:
        return not get(leader, f"nodes/{follower.name}")["running"]

    wait_until(is_dead, cluster.logs)
    request(leader, "DELETE", f"cluster/nodes/{follower.name}")
    wait_until(lambda: follower.name not in [node["name"] for node in get(leader, "nodes")], cluster.logs)
    cluster.start()
    wait_until(lambda: follower.name in [node["name"] for node in get(leader, "nodes")], cluster.logs)


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_a_rolling_restart_with_drain_loses_nothing_and_interrupts_little(cluster: GatewayCluster) -> None:
    with AmqpLink(cluster.leader().addresses["amqp"]) as link:
        link.declare("interrupted")
    accounting = Accounting(cluster, "drained").start()
    interruptions = []
    for _ in range(ROUNDS):
        for node in cluster.nodes:
            leader = cluster.leader()
            begin_s = time.monotonic()
            request(leader, "PUT", f"cluster/nodes/{node.name}/maintenance", {})
            if node is leader:
                cluster.leader(after=node.led_epoch)
                interruptions.append(interruption_s(cluster, node.name, begin_s))
            wait_until(lambda node=node: is_drained(cluster, node), cluster.logs)  # type: ignore[misc]  # its default
            accounting.goes_on()
            assert node.stop() == 0, node.log
            cluster.start()
            assert is_served(node), "maintenance ends with a restart"
    accounting.finish()
    print("interruptions:", [f"{each:.2f} s" for each in interruptions])
    assert interruptions
    assert max(interruptions) < OWED_S + _BUSY_S
