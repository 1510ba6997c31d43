"""A pytest plugin: the fixture ``gateway_broker``, a whole broker with real protocols on free ports.

The broker is a child process with a store in memory, started for the first test that uses it. Each test gets a new
virtual host in it, so tests do not see each other's queues.
"""

from collections.abc import Iterator, Sequence

import pytest

from gateway.testing.broker_handle import TestBroker
from gateway.testing.broker_process import BrokerProcess

__all__ = ["BrokerProcess", "TestBroker"]


@pytest.fixture(scope="session")
def gateway_settings() -> Sequence[str]:
    """Return the settings of the broker as ``SECTION.KEY=VALUE``; a project overrides this fixture."""
    return ()


@pytest.fixture(scope="session")
def gateway_fake_clock() -> bool:
    """Return whether tests advance the broker's clock; a project overrides this fixture."""
    return False


@pytest.fixture(scope="session")
def gateway_process(
    gateway_settings: Sequence[str], gateway_fake_clock: bool, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """Yield the broker that all tests of a session share."""
    directory = tmp_path_factory.mktemp("gateway")
    process = BrokerProcess(directory, gateway_settings, has_fake_clock=gateway_fake_clock)
    yield process
    process.stop()


@pytest.fixture
def gateway_broker(gateway_process: BrokerProcess) -> Iterator[TestBroker]:
    """Yield a broker with a new virtual host, which is deleted after the test."""
    broker = TestBroker(gateway_process, gateway_process.new_vhost())
    yield broker
    gateway_process.request("DELETE", "vhosts", broker.vhost)
