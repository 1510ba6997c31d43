"""Clients of the leader's own ports outlive its leadership, if the settings say so: with one cell, too."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.clusters.gateway_cluster import GatewayCluster, running_cluster
from tests.clusters.links import AmqpLink
from tests.clusters.staying_clients import AioPikaClients, PikaClients, StayingClients
from tests.clusters.test_drain import drain, revive
from tests.management_client import get, request
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

#: The leader gives up after four seconds without a majority.
_GIVES_UP_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[GatewayCluster]:
    with running_cluster(settings=("cluster.keep_clients=true",)) as found:
        yield found


def _transfer(cluster: GatewayCluster) -> None:
    request(cluster.leader(), "PUT", "cluster/leader", {})


def _lose_the_majority(cluster: GatewayCluster) -> None:
    """Stop two servers until the leader gives up, and start them again."""
    leader = cluster.leader()
    gone = cluster.servers.servers[:2]
    for server in gone:
        server.kill()
    wait_until(lambda: leader.led_epoch == 0, cluster.logs, timeout_s=_GIVES_UP_S)
    for server in gone:
        server.start()
    cluster.servers.wait_until_ready()


def _go_on(cluster: GatewayCluster, clients: list[StayingClients]) -> None:
    goals = {each: (len(each.confirmed) + 50, len(set(each.taken)) + 50) for each in clients}

    def have_gone_on() -> bool:
        for each in clients:
            each.check()
        return all(len(each.confirmed) >= goal[0] and len(set(each.taken)) >= goal[1] for each, goal in goals.items())

    wait_until(have_gone_on, cluster.logs, timeout_s=60)


@pytest.mark.parametrize("change", [_transfer, _lose_the_majority], ids=["transferred", "without-a-majority"])
def test_clients_of_the_leader_go_on_with_the_next_one(
    cluster: GatewayCluster, change: Callable[[GatewayCluster], None]
) -> None:
    leader = cluster.leader()
    clients: list[StayingClients] = []
    for kind in (PikaClients, AioPikaClients):
        queue = f"own-{change.__name__}-{kind.__name__}"
        with AmqpLink(leader.addresses["amqp"]) as link:
            link.declare(queue)
        clients.append(kind(leader, queue).start())
    _go_on(cluster, clients)
    epoch = leader.led_epoch
    change(cluster)
    cluster.leader(after=epoch)
    _go_on(cluster, clients)
    for each in clients:
        each.end()
        wait_until(lambda each=each: each.has_ended, cluster.logs, timeout_s=60)  # type: ignore[misc]
        each.join()
        first = list(dict.fromkeys(each.taken))
        assert first == sorted(first)
        assert set(each.confirmed) <= set(each.taken)


def test_the_clients_of_a_leader_that_is_drained_are_told_to_leave(cluster: GatewayCluster) -> None:
    leader = cluster.leader()
    epoch = leader.led_epoch
    host = get(leader, "cluster")["node"]
    assert host == leader.name
    with AmqpLink(leader.addresses["amqp"]) as link:
        begin_s = time.monotonic()
        drain(cluster, leader)
        with pytest.raises(ConnectionResetError, match="maintenance mode"):
            link.next_method()
        assert time.monotonic() - begin_s < 30
    cluster.leader(after=epoch)
    revive(cluster, leader)
