"""Definitions in a cluster with two cells: those of the start and those of an import belong to both, or to none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pika
import pytest

from tests.clusters.cells import cell_of, epoch_of, leader_of, led_cells, running_cells, spread
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.management_client import get, request
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

LOADED = ("loaded-1", "loaded-2", "loaded-3")
ALL = {"configure": ".*", "write": ".*", "read": ".*"}


def _queue(vhost: str, name: str = "q") -> dict[str, object]:
    return {"name": name, "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}}


def _policy(vhost: str, most: object) -> dict[str, object]:
    definition = {"max-length": most}
    return {"vhost": vhost, "name": "p", "pattern": ".*", "definition": definition, "apply-to": "queues"}


def _loaded() -> dict[str, Any]:
    return {
        "users": [{"name": "loader", "password": "secret", "tags": ""}],
        "vhosts": [*({"name": name} for name in LOADED), {"name": "wanted", "cell": 2}],
        "permissions": [{"user": "loader", "vhost": name, **ALL} for name in (*LOADED, "wanted")],
        "queues": [*map(_queue, (*LOADED, "wanted")), {**_queue("/"), "vhost": None}],
        "policies": [_policy(name, 5) for name in LOADED],
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayCluster]:
    file: Path = tmp_path_factory.mktemp("definitions") / "loaded.json"
    file.write_text(json.dumps(_loaded()))
    with running_cells(f"load_definitions={file}") as found:
        yield found


def _names(node: ClusterNode, path: str) -> set[str]:
    return {each["name"] for each in get(node, path)}


def _refused(node: ClusterNode, path: str, definitions: object) -> tuple[int, str]:
    with pytest.raises(HTTPError) as raised:
        request(node, "POST", path, definitions)
    return raised.value.code, raised.value.read().decode()


def _in_both(*names: str, most: object = 7) -> dict[str, Any]:
    """Return definitions of two virtual hosts, one in each cell, and a user."""
    return {
        "users": [{"name": "both", "password": "secret", "tags": ""}],
        "vhosts": [{"name": name, "cell": cell} for cell, name in enumerate(names, 1)],
        "queues": list(map(_queue, names)),
        "policies": [_policy(names[-1], most)],
    }


def _require_nothing(cluster: GatewayCluster, *names: str) -> None:
    node = cluster.nodes[0]
    assert not set(names) & _names(node, "vhosts")
    assert "both" not in _names(node, "users")


def test_the_file_of_the_start_is_spread_over_the_cells(cluster: GatewayCluster) -> None:
    node = cluster.nodes[1]
    made = {*LOADED, "wanted", "/"}
    wait_until(lambda: made <= {each["vhost"] for each in get(node, "queues")}, cluster.logs)
    assert {cell_of(cluster, name) for name in LOADED} == {1, 2}
    assert cell_of(cluster, "wanted") == 2
    for name in LOADED:
        assert get(node, f"queues/{name}/q")["policy"] == "p"
    assert "q" in _names(node, "queues/%2F")
    for each in cluster.nodes:
        host, port = each.addresses["amqp"]
        for name in (*LOADED, "wanted"):
            login = pika.PlainCredentials("loader", "secret")
            connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, name, login))
            connection.channel().queue_declare("q", passive=True)
            connection.close()


def test_what_one_cell_refuses_is_applied_by_none(cluster: GatewayCluster) -> None:
    for path in ("definitions", "definitions-check"):
        status, reason = _refused(cluster.nodes[0], path, _in_both("new-1", "new-2", most="many"))
        assert status == 400
        assert "cell 2 of the cluster, nothing was changed: definitions: policies[0]" in reason
        _require_nothing(cluster, "new-1", "new-2")


def test_a_cell_that_the_cluster_does_not_have_is_refused(cluster: GatewayCluster) -> None:
    status, reason = _refused(cluster.nodes[0], "definitions", _in_both("new-1", "new-2", "new-3"))
    assert (status, "vhost 'new-3': the cluster has no cell 3" in reason) == (400, True)
    other = 3 - cell_of(cluster, LOADED[0])
    status, reason = _refused(cluster.nodes[0], "definitions", {"vhosts": [{"name": LOADED[0], "cell": other}]})
    assert (status, "cannot be moved" in reason) == (400, True)
    _require_nothing(cluster, "new-1", "new-2", "new-3")


def test_a_check_changes_nothing(cluster: GatewayCluster) -> None:
    assert request(cluster.nodes[2], "POST", "definitions-check", _in_both("new-1", "new-2")) is None
    _require_nothing(cluster, "new-1", "new-2")


def test_an_import_without_the_leader_of_one_cell_is_refused_and_is_whole_with_the_next_one(
    cluster: GatewayCluster,
) -> None:
    first, second, _ = spread(cluster)
    epoch = epoch_of(cluster, 2)
    definitions = _in_both("kept-1", "kept-2")
    second.kill()
    try:
        request(first, "POST", "definitions", definitions)
        refused = None  # on a slow machine the next leader is there before the request
    except HTTPError as error:
        refused = (error.code, error.read().decode())
    except URLError:
        refused = None  # on a slow machine the first cell changes its leader too
    if refused is None:
        assert epoch_of(cluster, 2) > epoch
    else:
        assert refused[0] == 503
        assert "cell 2 of the cluster, nothing was changed: cell 2 of the cluster does not answer" in refused[1]
        assert "both" not in _names(first, "users")
        assert 1 in led_cells(first), first.log
    leader_of(cluster, 2, after=epoch)

    def is_imported() -> bool:
        try:
            request(first, "POST", "definitions", definitions)
        except URLError:
            return False  # 503: the next leader is not known yet
        return True

    wait_until(is_imported, cluster.logs, timeout_s=30, interval_s=0.5)

    def cells() -> list[int]:
        try:
            return [int(get(first, f"vhosts/{name}")["cell"]) for name in ("kept-1", "kept-2")]
        except URLError:
            return []  # on a slow machine the first cell changes its leader

    wait_until(lambda: cells() == [1, 2], cluster.logs, timeout_s=30, interval_s=0.5)
    assert get(first, "queues/kept-2/q")["policy"] == "p"
    second.start()
