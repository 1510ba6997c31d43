"""A node whose broker cannot start leaves the place to another one, and follows, however often it is elected."""

from pathlib import Path

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.management_client import request
from tests.waiting import wait_until


def test_a_node_whose_broker_cannot_start_follows_again(cluster: GatewayCluster, tmp_path: Path) -> None:
    broken = cluster.follower()
    with AmqpLink(cluster.leader().addresses["amqp"]) as link:
        link.declare("outlives-a-broken-start")
    definitions = tmp_path / "definitions.json"
    definitions.write_text("{")
    assert broken.stop() == 0
    broken.start(f"load_definitions={definitions}")
    for failures in (1, 2):
        epoch = cluster.leader().led_epoch
        wait_until(lambda: is_willing(cluster, broken.name), cluster.logs)
        request(cluster.leader(), "PUT", "cluster/leader", {"node": broken.name})
        wait_until(lambda n=failures: broken.log_of_run.count("could not lead") == n, cluster.logs)  # type: ignore[misc]
        leader = cluster.leader(after=epoch)
        assert leader is not broken
        wait_until(lambda: serves(broken), cluster.logs)
    assert "Traceback" not in broken.log_of_run
    definitions.write_text("{}")
    wait_until(lambda: is_willing(cluster, broken.name), cluster.logs)
    epoch = cluster.leader().led_epoch
    request(cluster.leader(), "PUT", "cluster/leader", {"node": broken.name})
    assert cluster.leader(after=epoch) is broken
    assert serves(broken)
    assert broken.stop() == 0


def is_willing(cluster: GatewayCluster, name: str) -> bool:
    """Whether a node stands for election, as the leader sees it."""
    members = request(cluster.leader(), "GET", "cluster")["members"]
    return any(member["name"] == name and member["eligible"] for member in members)


def serves(node: ClusterNode) -> bool:
    """Whether clients of a node are served, by itself or by the leader."""
    try:
        with AmqpLink(node.addresses["amqp"], 5) as link:
            return link.declare("outlives-a-broken-start") == 0
    except OSError:
        return False
