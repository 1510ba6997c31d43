"""Two cells of one cluster, which two nodes lead: what happens to one is not noticed in the other."""

from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from tests.clusters.accounting import Accounting
from tests.clusters.cells import VHOSTS, epoch_of, find_leader, leader_of, led_cells, running_cells, spread
from tests.clusters.gateway_cluster import TAKEOVER_S, ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.clusters.staying_clients import PikaClients, StayingClients
from tests.management_client import get, request
from tests.waiting import wait_until

#: The time in which clients go on after a takeover, in seconds.
_GOES_ON_S = 60.0

#: So many messages of the other cell are confirmed at least while one cell has no leader.
_MEANWHILE = 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[GatewayCluster]:
    with running_cells() as found:
        yield found


def _clients(cluster: GatewayCluster, cell: int, run: str) -> list[StayingClients]:
    """Start clients of a cell on the node that leads none."""
    *_, third = spread(cluster)
    vhost = VHOSTS[cell]
    with AmqpLink(third.addresses["amqp"], vhost=vhost) as link:
        link.declare(run)
    return [PikaClients(third, run, vhost).start()]


def _wait_for_more(cluster: GatewayCluster, clients: list[StayingClients], count: int = 50) -> None:
    goals = {each: (len(each.confirmed) + count, len(set(each.taken)) + count) for each in clients}

    def is_reached() -> bool:
        for each in clients:
            each.check()
        return all(
            len(each.confirmed) >= confirmed and len(set(each.taken)) >= taken
            for each, (confirmed, taken) in goals.items()
        )

    wait_until(is_reached, cluster.logs, timeout_s=_GOES_ON_S)


def _wait_for_confirms(cluster: GatewayCluster, clients: StayingClients, count: int) -> None:
    goal = len(clients.confirmed) + count
    wait_until(lambda: clients.failures or len(clients.confirmed) >= goal, cluster.logs)
    clients.check()


def _wait_until_ousted(cluster: GatewayCluster, node: ClusterNode, cell: int) -> None:
    wait_until(lambda: cell not in led_cells(node), cluster.logs, timeout_s=TAKEOVER_S)


def _finish(cluster: GatewayCluster, clients: list[StayingClients]) -> None:
    for each in clients:
        each.end()
    wait_until(lambda: all(each.failures or each.has_ended for each in clients), cluster.logs, timeout_s=_GOES_ON_S)
    for each in clients:
        each.join()
        first = list(dict.fromkeys(each.taken))
        assert first == sorted(first), "messages came out of order"
        assert set(each.confirmed) <= set(first), "a confirmed message is lost"


@pytest.mark.timeout(200 + 120 * ROUNDS)
@pytest.mark.parametrize("cell", [1, 2])
def test_the_death_of_a_leader_is_not_noticed_in_the_other_cell(cluster: GatewayCluster, cell: int) -> None:
    for at in range(ROUNDS):
        other = 3 - cell
        killed, noticing = _clients(cluster, cell, f"killed-{at}"), _clients(cluster, other, f"other-{at}")
        _wait_for_more(cluster, [*killed, *noticing])
        epoch, kept = epoch_of(cluster, cell), epoch_of(cluster, other)
        leader_of(cluster, cell).kill()
        assert find_leader(cluster, cell) is None
        _wait_for_confirms(cluster, noticing[0], _MEANWHILE)
        if cell == 2:  # the leader of the first cell answers the HTTP API
            assert get(leader_of(cluster, 1), "overview")["silent_cells"] == [2]
        assert find_leader(cluster, cell) is None, "the next leader came before anything could be seen"
        leader_of(cluster, cell, after=epoch)
        assert epoch_of(cluster, other) == kept
        _wait_for_more(cluster, [*killed, *noticing])
        _finish(cluster, [*killed, *noticing])
        cluster.start()
        spread(cluster)


@pytest.mark.timeout(400 + 300 * ROUNDS)
def test_nothing_confirmed_is_lost_in_either_cell_whatever_is_killed(cluster: GatewayCluster) -> None:
    accounts = [Accounting(cluster, f"cells-{cell}", vhost).start() for cell, vhost in VHOSTS.items()]
    for _ in range(ROUNDS):
        for cell in VHOSTS:
            epoch = epoch_of(cluster, cell)
            leader_of(cluster, cell).kill()
            leader_of(cluster, cell, after=epoch)
            for account in accounts:
                account.goes_on()
            cluster.start()
        cluster.kill_all()
        cluster.start()
        for cell in VHOSTS:
            leader_of(cluster, cell)
        for account in accounts:
            account.goes_on()
    for account in accounts:
        account.finish()
    assert min(account.confirmed for account in accounts) > 300, "too little was confirmed to show anything"


@pytest.mark.timeout(400 + 300 * ROUNDS)
def test_nothing_is_lost_when_a_leader_is_paused_or_the_engine_has_no_majority(cluster: GatewayCluster) -> None:
    accounts = [Accounting(cluster, f"faults-{cell}", vhost).start() for cell, vhost in VHOSTS.items()]
    for _ in range(ROUNDS):
        for cell in VHOSTS:
            spread(cluster)
            paused, epoch = leader_of(cluster, cell), epoch_of(cluster, cell)
            paused.pause()
            leader_of(cluster, cell, after=epoch)
            paused.resume()
            _wait_until_ousted(cluster, paused, cell)
            for account in accounts:
                account.goes_on()
        for server in cluster.servers.servers[:2]:
            server.kill()
        wait_until(
            lambda: not find_leader(cluster, 1) and not find_leader(cluster, 2), cluster.logs, timeout_s=TAKEOVER_S
        )
        for server in cluster.servers.servers[:2]:
            server.start()
        cluster.servers.wait_until_ready()
        for cell in VHOSTS:
            leader_of(cluster, cell)
        for account in accounts:
            account.goes_on()
    for account in accounts:
        account.finish(is_ordered=False)
    assert min(account.confirmed for account in accounts) > 100


@pytest.mark.timeout(400 + 240 * ROUNDS)
def test_a_rolling_restart_loses_nothing_in_either_cell(cluster: GatewayCluster) -> None:
    accounts = [Accounting(cluster, f"rolling-{cell}", vhost).start() for cell, vhost in VHOSTS.items()]
    for _ in range(ROUNDS):
        for node in cluster.nodes:
            led = led_cells(node)
            assert node.stop() == 0, node.log
            for cell, epoch in led.items():
                leader_of(cluster, cell, after=epoch)
            for account in accounts:
                account.goes_on()
            cluster.start()
    for account in accounts:
        account.finish()
    assert min(account.confirmed for account in accounts) > 100


@pytest.mark.timeout(300)
def test_a_drained_node_hands_over_each_cell_and_leads_none_until_it_is_revived(cluster: GatewayCluster) -> None:
    first, second, _ = spread(cluster)
    clients = _clients(cluster, 2, "drained")
    _wait_for_more(cluster, clients)
    epoch, kept = epoch_of(cluster, 2), epoch_of(cluster, 1)
    request(first, "PUT", f"cluster/nodes/{second.name}/maintenance", {})
    leader = leader_of(cluster, 2, after=epoch)
    assert leader is not second
    assert epoch_of(cluster, 1) == kept
    _wait_for_more(cluster, clients)
    _finish(cluster, clients)
    assert get(first, f"nodes/{second.name}")["being_drained"] is True
    request(first, "DELETE", f"cluster/nodes/{second.name}/maintenance")
    spread(cluster)


@pytest.mark.timeout(300)
def test_the_leadership_of_a_cell_is_transferred_and_leaders_are_spread_again(cluster: GatewayCluster) -> None:
    first, second, _ = spread(cluster)
    epoch, kept = epoch_of(cluster, 2), epoch_of(cluster, 1)
    wait_until(lambda: _is_transferred(first, 2), cluster.logs)
    assert leader_of(cluster, 2, after=epoch) is first
    assert led_cells(first).keys() == {1, 2}
    assert epoch_of(cluster, 1) == kept
    cells = get(second, "cluster")["cells"]
    assert [each["leader"] for each in cells] == [first.name, first.name]
    spread(cluster)
    leaders = {each["leader"] for each in get(second, "cluster")["cells"]}
    assert len(leaders) == 2


def _is_transferred(node: ClusterNode, cell: int) -> bool:
    """Whether the leadership of a cell is handed to a node, which does not stand for a while after it has led."""
    try:
        request(node, "PUT", "cluster/leader", {"cell": cell, "node": node.name})
    except HTTPError:
        return False
    return True
