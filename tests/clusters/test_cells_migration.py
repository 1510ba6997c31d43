"""A single node becomes a cluster with two cells, and the backups of these become another one: nothing is missing."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clusters.cells import cell_of, leader_of
from tests.clusters.gateway_cluster import GatewayCluster
from tests.clusters.test_migration import UNFINISHED, Migrations, directory
from tests.clusters.test_takeover_contents import Contents, require_contents
from tests.interop.broker import PROJECT
from tests.jetstream.nats_servers import NatsServers, running_servers
from tests.management_client import get, put
from tests.running import Gateway

__all__ = ["directory"]

CELLS = ("cluster.cells=2",)


@contextmanager
def _running(servers: NatsServers, directory: Path) -> Iterator[GatewayCluster]:
    directory.mkdir()
    cluster = GatewayCluster(servers, directory, settings=CELLS)
    try:
        cluster.start()
        leader_of(cluster, 1)
        leader_of(cluster, 2)
        yield cluster
    finally:
        cluster.end()


def _state(contents: list[Contents]) -> list[Any]:
    """Return the users, permissions and all else that an export has, and the messages of both virtual hosts."""
    return [contents[0].definitions(), *((each.depths(), each.stream()) for each in contents)]


def _back_up(data: Path, target: Path) -> Path:
    command = [sys.executable, "-m", "gateway", "backup", str(data), str(target)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.timeout(400)
def test_virtual_hosts_are_spread_and_the_backups_of_all_cells_are_restored(directory: Path) -> None:
    single = Gateway(directory / "single").start()
    try:
        put(single, "vhosts/a-second", {})
        first = Contents(single, "moved")  # type: ignore[arg-type]  # a node as others
        second = Contents(single, "other", "a-second")  # type: ignore[arg-type]
        contents = [first, second]
        for each in contents:
            each.declare()
            each.fill()
        before = _state(contents)
        assert single.stop() == 0
    finally:
        single.end()
    with running_servers() as servers:
        migrations = Migrations(servers, single.data, settings=CELLS)
        migrations.begin(UNFINISHED).communicate(timeout=60)
        code, output = migrations.run()
        assert code == 0, output
        assert migrations.run()[1].splitlines()[-1] == "the migration was complete already"
        with _running(servers, directory / "x") as cluster:
            first.node = second.node = cluster.nodes[0]
            assert {name: cell_of(cluster, name) for name in ("%2F", "a-second")} == {"%2F": 1, "a-second": 2}
            assert _state(contents) == before
            copies = [Path("cluster-copy"), Path("cell-2") / "cluster-copy"]
            backups = [
                _back_up(leader_of(cluster, cell).data / copy, directory / f"backup-{cell}")
                for cell, copy in enumerate(copies, 1)
            ]
            code, output = migrations.run()
            assert (code != 0, "a gateway leads the cluster" in output) == (True, True), output
    with running_servers() as servers:
        code, output = Migrations(servers, *backups, single.data, settings=CELLS).run()
        assert (code != 0, "3 directories are given, and the cluster has 2 cells" in output) == (True, True), output
        code, output = Migrations(servers, *reversed(backups), settings=CELLS).run()
        assert (code != 0, "the first directory must be that of cell 1" in output) == (True, True), output
        code, output = Migrations(servers, *backups, settings=CELLS).run()
        assert code == 0, output
        with _running(servers, directory / "y") as cluster:
            first.node = second.node = cluster.nodes[1]
            assert _state(contents) == before
            places = {each["name"]: each["cell"] for each in get(cluster.nodes[2], "vhosts")}
            assert (places["/"], places["a-second"]) == (1, 2)
            for each in contents:
                require_contents(each)
