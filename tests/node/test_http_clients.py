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
    def evict(self) -> None:
        """Do nothing."""


def test_clients_of_the_api_and_of_the_metrics_are_counted() -> None:
    settings, reactor = Settings(), MemoryReactorClock()
    ports = NodePorts(settings, reactor, {}, recorder=None)  # type: ignore[arg-type]  # records nothing
    ports.listeners = Bound()  # type: ignore[assignment]  # binds nothing
    api, metrics = (HttpFactory(None, http_limits(settings), reactor) for _ in range(2))  # type: ignore[arg-type]
    ports.serve(api, lambda: metrics)
    assert ports.http_clients == 0
    browser, scraper = Connection(), Connection()
    api.connections.admit(browser)
    metrics.connections.admit(scraper)
    assert ports.http_clients == 2
    api.connections.forget(browser)
    assert ports.http_clients == 1
