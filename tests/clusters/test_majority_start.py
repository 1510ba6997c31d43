"""A node starts while two of three NATS servers answer; the third is checked when it comes back."""

from collections.abc import Iterator

import pytest

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.jetstream.nats_servers import NatsServer
from tests.management_client import get, request
from tests.running import START_TIMEOUT_S
from tests.waiting import wait_until


@pytest.fixture
def stopped(cluster: GatewayCluster) -> Iterator[NatsServer]:
    """Yield a server that is stopped, of a cluster whose nodes have all checked it."""
    server = cluster.servers.servers[2]
    server.stop()
    yield server
    server.stop()
    server.jetstream = "sync_interval: always"
    cluster.start()


def alive_names(node: ClusterNode) -> list[str]:
    """Return the nodes that are alive, as this one sees them."""
    return [member["name"] for member in get(node, "cluster")["members"] if member["alive"]]


def test_a_node_starts_with_two_servers_and_checks_the_third_later(
    cluster: GatewayCluster, stopped: NatsServer
) -> None:
    node = cluster.follower()
    node.stop()
    node.start()
    assert f"a NATS server does not answer, it is checked when it does server={stopped.monitoring}" in node.log_of_run
    wait_until(lambda: cluster.find_leader(), cluster.logs)
    if cluster.leader() is not node:
        epoch = cluster.leader().led_epoch
        wait_until(lambda: node.name in alive_names(cluster.leader()), cluster.logs)
        request(cluster.leader(), "PUT", "cluster/leader", {"node": node.name})
        assert cluster.leader(after=epoch) is node
    assert get(node, "cluster")["engine"]["unchecked"] == [stopped.monitoring]
    with AmqpLink(node.addresses["amqp"]) as link:
        link.declare("with-two-servers")
    stopped.start()
    wait_until(lambda: "answers again, and is fit" in node.log_of_run, cluster.logs)
    assert get(node, "cluster")["engine"]["unchecked"] == []


def test_a_node_ends_when_the_third_comes_back_and_is_not_fit(cluster: GatewayCluster, stopped: NatsServer) -> None:
    node = cluster.follower()
    node.stop()
    node.start()
    stopped.jetstream = "sync_interval: 2m"
    stopped.start()
    assert node._wait(START_TIMEOUT_S) not in (0, None), node.log
    last = node.log.splitlines()[-1]
    assert last.startswith(f"gateway: {stopped.monitoring} acknowledges messages before they are on disk")


def test_two_missing_servers_are_too_many(cluster: GatewayCluster, stopped: NatsServer) -> None:
    node = cluster.follower()
    node.stop()
    cluster.servers.servers[1].stop()
    assert node.run_to_end() not in (0, None)
    cluster.servers.servers[1].start()
