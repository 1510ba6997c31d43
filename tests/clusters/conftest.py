"""One cluster for all tests of this folder: each leaves it whole, which is a part of what it shows."""

from collections.abc import Iterator

import pytest

from tests.clusters.gateway_cluster import GatewayCluster, running_cluster


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[GatewayCluster]:
    """Yield the servers and nodes of all tests."""
    with running_cluster() as found:
        yield found


@pytest.fixture
def cluster(shared_cluster: GatewayCluster) -> GatewayCluster:
    """Return the cluster with all nodes running and known to the leader."""
    return shared_cluster.start().all_joined()
