"""A cluster with two cells, and what its tests ask it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.error import HTTPError, URLError

from tests.clusters.gateway_cluster import TAKEOVER_S, ClusterNode, GatewayCluster, running_cluster
from tests.management_client import get, request
from tests.waiting import wait_until

#: The virtual hosts of the tests, by their cells.
VHOSTS: Final = {1: "/", 2: "second"}

_LEADING: Final = re.compile(
    r"info leading epoch=(\d+) cell=(\d+)|(?:no longer the leader|could not lead) .*cell=(\d+)|(info stopping)"
)


def led_cells(node: ClusterNode) -> dict[int, int]:
    """Return the cells that a running node leads, and their epochs, as its log says."""
    led: dict[int, int] = {}
    if not node.is_running:
        return led
    for epoch, cell, lost, stopping in _LEADING.findall(node.log_of_run):
        if stopping:
            led.clear()
        elif lost:
            led.pop(int(lost), None)
        else:
            led[int(cell)] = int(epoch)
    return led


def find_leader(cluster: GatewayCluster, cell: int) -> ClusterNode | None:
    """Return the running node that leads the highest epoch of a cell."""
    return _find_epoch(cluster, cell)[1]


def _find_epoch(cluster: GatewayCluster, cell: int) -> tuple[int, ClusterNode | None]:
    """Return the highest epoch of a cell that a running node leads, and the node; each log is read once."""
    led = [(led_cells(node).get(cell, 0), node) for node in cluster.nodes]
    epoch, leader = max(led, key=lambda each: each[0])
    return epoch, leader if epoch else None


def _wait_for_epoch(cluster: GatewayCluster, cell: int, after: int = 0) -> tuple[int, ClusterNode]:
    def found() -> tuple[int, ClusterNode] | None:
        epoch, leader = _find_epoch(cluster, cell)
        return (epoch, leader) if leader is not None and epoch > after else None

    led = wait_until(found, lambda: f"no node leads cell {cell}:\n{cluster.logs()}", timeout_s=TAKEOVER_S)
    assert led is not None
    return led


def leader_of(cluster: GatewayCluster, cell: int, after: int = 0) -> ClusterNode:
    """Wait for a leader of a cell, of a later epoch than ``after``, and return it."""
    return _wait_for_epoch(cluster, cell, after)[1]


def epoch_of(cluster: GatewayCluster, cell: int) -> int:
    """Return the epoch of the leader of a cell."""
    return _wait_for_epoch(cluster, cell)[0]


def spread(cluster: GatewayCluster) -> tuple[ClusterNode, ClusterNode, ClusterNode]:
    """Let two nodes lead a cell each; return them, and the third one."""

    def is_spread() -> bool:
        try:
            cells = get(cluster.nodes[0], "cluster")["cells"]
            if None not in (cells[0]["leader"], cells[1]["leader"]) and cells[0]["leader"] != cells[1]["leader"]:
                return find_leader(cluster, 1) is not find_leader(cluster, 2)
            request(cluster.nodes[0], "POST", "rebalance/queues", {})
        except (HTTPError, URLError, OSError):
            pass  # the first cell has no leader for a moment
        return False

    wait_until(is_spread, cluster.logs, timeout_s=TAKEOVER_S, interval_s=0.5)
    first, second = leader_of(cluster, 1), leader_of(cluster, 2)
    (third,) = (node for node in cluster.nodes if node not in (first, second))
    return first, second, third


def delete_vhost(cluster: GatewayCluster, name: str) -> None:
    """Delete a virtual host, and wait until it is gone."""
    node = cluster.nodes[0]
    request(node, "DELETE", f"vhosts/{name}")
    wait_until(lambda: name not in [each["name"] for each in get(node, "vhosts")], cluster.logs)
    wait_until(lambda: not _is_deleting(node, name), cluster.logs)


def _is_deleting(node: ClusterNode, name: str) -> bool:
    try:
        get(node, f"vhosts/{name}")
    except HTTPError as error:
        return error.code != 404
    return True


def cell_of(cluster: GatewayCluster, vhost: str) -> int:
    """Return the cell of a virtual host."""
    return int(get(cluster.nodes[0], f"vhosts/{vhost}")["cell"])


@contextmanager
def running_cells(*settings: str) -> Iterator[GatewayCluster]:
    """Run a cluster with two cells that two nodes lead, each with a virtual host of ``VHOSTS``."""
    with running_cluster(listeners=("prometheus",), settings=("cluster.cells=2", *settings)) as cluster:
        spread(cluster)
        request(cluster.nodes[0], "PUT", f"vhosts/{VHOSTS[2]}", {"cell": 2})
        yield cluster
