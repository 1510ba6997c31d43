"""AMQP clients of a follower keep their connections when the leader changes: nothing confirmed is lost or reordered."""

from collections.abc import Callable
from urllib.error import HTTPError

import pytest

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.clusters.staying_clients import AioPikaClients, PikaClients, StayingClients
from tests.clusters.test_drain import drain, revive
from tests.management_client import request
from tests.waiting import wait_until

#: The time in which clients go on after a takeover, in seconds.
_GOES_ON_S = 60.0


def hand_over(cluster: GatewayCluster, node: ClusterNode) -> None:
    """Let a node lead, as soon as it stands for election."""
    present = cluster.leader()
    epoch = present.led_epoch

    def is_accepted() -> bool:
        try:
            request(present, "PUT", "cluster/leader", {"node": node.name})
        except HTTPError:  # it led a moment ago
            return False
        return True

    wait_until(is_accepted, cluster.logs)
    assert cluster.leader(after=epoch) is node


def _kill(cluster: GatewayCluster, leader: ClusterNode) -> None:
    leader.kill()


def _drain(cluster: GatewayCluster, leader: ClusterNode) -> None:
    drain(cluster, leader)


def _transfer(cluster: GatewayCluster, leader: ClusterNode) -> None:
    request(leader, "PUT", "cluster/leader", {})


def _lead_itself(cluster: GatewayCluster, leader: ClusterNode) -> None:
    """Let the node of the clients lead for a while, then another one."""
    follower = cluster.follower()
    hand_over(cluster, follower)
    wait_until(lambda: "clients go on with another leader" in follower.log_of_run, cluster.logs)
    hand_over(cluster, leader)


def _pause(cluster: GatewayCluster, leader: ClusterNode) -> None:
    leader.pause()


def _repair(cluster: GatewayCluster, leader: ClusterNode) -> None:
    if leader.is_paused:
        leader.resume()
        wait_until(lambda: leader.led_epoch == 0, "the old leader still leads")
    cluster.start()
    revive(cluster, leader)


@pytest.mark.timeout(200 + 120 * ROUNDS)
@pytest.mark.parametrize(
    "change",
    [_kill, _drain, _transfer, _lead_itself, _pause],
    ids=["killed", "drained", "transferred", "own-node", "paused"],
)
def test_clients_of_a_follower_stay_connected(
    cluster: GatewayCluster, change: Callable[[GatewayCluster, ClusterNode], None]
) -> None:
    for at in range(ROUNDS):
        leader, follower = cluster.leader(), cluster.follower()
        clients: list[StayingClients] = []
        for kind in (PikaClients, AioPikaClients):
            queue = f"staying-{change.__name__}-{kind.__name__}-{at}"
            with AmqpLink(leader.addresses["amqp"]) as link:
                link.declare(queue)
            clients.append(kind(follower, queue).start())
        _wait_for_progress(cluster, clients)
        epoch = leader.led_epoch
        change(cluster, leader)
        cluster.leader(after=epoch)
        _wait_for_progress(cluster, clients)
        for each in clients:
            _finish(cluster, each)
        _repair(cluster, leader)


def _wait_for_progress(cluster: GatewayCluster, clients: list[StayingClients]) -> None:
    """Wait until each client has confirmed and taken more."""
    goals = {each: (len(each.confirmed) + 50, len(set(each.taken)) + 50) for each in clients}

    def is_reached() -> bool:
        for each in clients:
            each.check()
        return all(
            len(each.confirmed) >= confirmed and len(set(each.taken)) >= taken
            for each, (confirmed, taken) in goals.items()
        )

    wait_until(is_reached, lambda: f"{_state(clients)}\n{cluster.logs()}", timeout_s=_GOES_ON_S)


def _state(clients: list[StayingClients]) -> str:
    return ", ".join(f"{type(each).__name__}: {len(each.confirmed)} {len(each.taken)}" for each in clients)


def _finish(cluster: GatewayCluster, clients: StayingClients) -> None:
    clients.end()
    wait_until(lambda: clients.failures or clients.has_ended, cluster.logs, timeout_s=_GOES_ON_S)
    clients.join()
    first = list(dict.fromkeys(clients.taken))
    assert first == sorted(first), "messages came out of order"
    assert set(clients.confirmed) <= set(first)
