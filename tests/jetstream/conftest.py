"""Fixtures: three nats-servers for all tests of a module, and nodes on them."""

from collections.abc import Iterator

import pytest

from tests.jetstream.nats_servers import NatsServers, running_servers
from tests.jetstream.places import JetStreamPlace


@pytest.fixture(scope="module")
def servers() -> Iterator[NatsServers]:
    """Yield three running servers."""
    with running_servers() as found:
        yield found


@pytest.fixture
def place(servers: NatsServers) -> Iterator[JetStreamPlace]:
    """Yield nodes on the servers."""
    found = JetStreamPlace(servers)
    yield found
    found.close()
