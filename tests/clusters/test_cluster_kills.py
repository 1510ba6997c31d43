"""Nodes and servers are killed with -9 under load: nothing confirmed is lost, and nothing is reordered."""

import pytest

from tests.clusters.accounting import Accounting
from tests.clusters.gateway_cluster import GatewayCluster
from tests.clusters.rounds import ROUNDS


def _kill_leader(cluster: GatewayCluster) -> None:
    leader = cluster.leader()
    epoch = leader.led_epoch
    leader.kill()
    cluster.leader(after=epoch)


def _kill_follower(cluster: GatewayCluster) -> None:
    cluster.follower().kill()


def _kill_server(cluster: GatewayCluster) -> None:
    server = cluster.log_leader()
    server.kill()
    server.start()
    cluster.servers.wait_until_ready()


def _kill_all_nodes(cluster: GatewayCluster) -> None:
    epoch = cluster.leader().led_epoch
    cluster.kill_all()
    cluster.start()
    cluster.leader(after=epoch)


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_nothing_confirmed_is_lost_whatever_is_killed(cluster: GatewayCluster) -> None:
    accounting = Accounting(cluster, "kills").start()
    for _ in range(ROUNDS):
        for fault in (_kill_leader, _kill_follower, _kill_server, _kill_all_nodes):
            fault(cluster)
            accounting.goes_on()
            cluster.start()
    accounting.finish()
    assert accounting.confirmed > 500, "too little was confirmed to show anything"
