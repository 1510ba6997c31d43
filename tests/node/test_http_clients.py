"""The connections to the HTTP API and to the metrics, which a node counts: none of them is paused by an idle node."""

from typing import Any

from twisted.internet.testing import MemoryReactorClock

from gateway.config import Settings
from gateway.management.web.factory import HttpFactory
from gateway.node.http import http_limits
from gateway.node.ports import NodePorts


class Bound:
    """Listeners of which those of the API and of the metrics are bound."""

    addresses = dict.fromkeys(("management", "prometheus"), ("127.0.0.1", 0))

    def serve(self, name: str, factory: Any, tls: Any = None) -> None:
        """Do nothing: the test makes the connections."""


class Connection:
    def __init__(self) -> None:
        self.ends: list[str] = []

    def evict(self) -> None:
        """Note it."""
        self.ends.append("evicted")

    def abort(self) -> None:
        """Note it."""
        self.ends.append("aborted")


def served() -> tuple[NodePorts, HttpFactory, HttpFactory]:
    """Return ports, and the factories of the API and of the metrics."""
    settings, reactor = Settings(), MemoryReactorClock()
    ports = NodePorts(settings, reactor, {}, recorder=None)  # type: ignore[arg-type]  # records nothing
    ports.listeners = Bound()  # type: ignore[assignment]  # binds nothing
    api, metrics = (HttpFactory(None, http_limits(settings), reactor) for _ in range(2))  # type: ignore[arg-type]
    ports.serve(api, lambda: metrics)
    return ports, api, metrics


def test_clients_of_the_api_and_of_the_metrics_are_counted() -> None:
    ports, api, metrics = served()
    assert ports.http_clients == 0
    browser, scraper = Connection(), Connection()
    api.connections.admit(browser)
    metrics.connections.admit(scraper)
    assert ports.http_clients == 2
    api.connections.forget(browser)
    assert ports.http_clients == 1


def test_a_node_that_stops_closes_its_http_connections() -> None:
    ports, api, metrics = served()
    idle, busy, scraper = Connection(), Connection(), Connection()
    for connection in (idle, busy):
        api.connections.admit(connection)
    api.connections.occupied(busy)
    metrics.connections.admit(scraper)
    ports.close_http_clients()
    assert (idle.ends, busy.ends, scraper.ends) == (["evicted"], ["aborted"], ["evicted"])
