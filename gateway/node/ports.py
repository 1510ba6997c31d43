"""The ports of a node: bound first, answered as not ready during the start, then served."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from twisted.internet.protocol import Factory

from gateway.config import Settings
from gateway.kernel.broker.recovery import Recovery
from gateway.management.http.not_ready import NotReadyApi
from gateway.management.web.factory import HttpFactory
from gateway.net.certificates import TlsContext
from gateway.net.clock import ReactorClock
from gateway.net.listeners import Listeners
from gateway.node.http import MANAGEMENT, MANAGEMENT_TLS, http_limits, management_ports
from gateway.node.metrics import bind_metrics, serve_metrics
from gateway.node.protocols import LISTENERS, ProtocolListener
from gateway.node.protocols.served import ServedProtocol
from gateway.node.startup import progress_fields, progress_text
from gateway.recording.recorder import Recorder
from gateway.recording.tap import TapFactory


def bind_ports(settings: Settings, listeners: Listeners) -> None:
    """Bind the ports of all listeners that are not off. :raises ConfigurationError: if one cannot be bound."""
    for listener in LISTENERS:
        if (port := listener.port(settings)) is not None:
            listeners.bind(listener.name, port)
    for name, port in management_ports(settings).items():
        listeners.bind(name, port)
    bind_metrics(settings, listeners)


class NodePorts:
    """Binds and serves the ports that the settings name.

    ``tls_contexts`` has the TLS context of all of them, once one is served with TLS. ``bound`` are listeners that are
    bound already.
    """

    def __init__(
        self,
        settings: Settings,
        reactor: Any,  # Any: Twisted's interfaces are not types
        protocols: Mapping[type[ServedProtocol], ServedProtocol],
        recorder: Recorder,
        bound: Listeners | None = None,
    ) -> None:
        self._settings = settings
        self._reactor = reactor
        self._protocols = protocols
        self._recorder = recorder
        self._wire_clock = ReactorClock(reactor, lambda: None)  # for connections outside the turns: it is never paused
        self.listeners = bound or Listeners(reactor, self._wire_clock, settings.bind)
        self._are_bound = bound is not None
        self.tls_contexts: list[TlsContext] = []
        self._http: list[HttpFactory] = []

    @property
    def http_clients(self) -> int:
        """The number of connections to the HTTP API and to the metrics, idle ones too."""
        return sum(len(factory.connections) for factory in self._http)

    def close_http_clients(self) -> None:
        """Close the connections to the HTTP API and to the metrics."""
        for factory in self._http:
            factory.connections.close_all()

    def bind(self) -> None:
        """Bind the ports that are not off, unless they are. :raises ConfigurationError: if one cannot be bound."""
        if not self._are_bound:
            bind_ports(self._settings, self.listeners)

    def serve(self, management: HttpFactory, metrics: Callable[[], HttpFactory]) -> None:
        """Serve clients of the protocols, of the HTTP API and of the metrics at all bound ports."""
        self._http.append(management)

        def counted_metrics() -> HttpFactory:
            self._http.append(metrics())
            return self._http[-1]

        for listener in LISTENERS:
            if listener.name in self.listeners.addresses:
                protocol = self._protocols[listener.protocol]
                plain = TapFactory(listener.bare_name, protocol.factory(is_tls=listener.is_tls), self._recorder)
                tapped = TapFactory(listener.name, protocol.factory_of(listener), self._recorder)
                self._serve(listener, tapped, plain)
        self._serve_management(lambda name: TapFactory(name, management, self._recorder))
        serve_metrics(self.listeners, counted_metrics, self._tls_context)

    def serve_not_ready(self, recovery: Recovery) -> None:
        """Answer on all bound ports that the broker is not ready, with the progress."""
        for listener in LISTENERS:
            if listener.name in self.listeners.addresses:
                reason = partial(progress_text, recovery)
                plain, layered = listener.not_ready_factories(self._wire_clock, self._settings, reason)
                self._serve(listener, layered, plain)
        api = NotReadyApi(partial(progress_fields, recovery))
        factory = partial(HttpFactory, api, http_limits(self._settings), self._reactor)
        refusing_api = factory()
        self._serve_management(lambda name: refusing_api)
        serve_metrics(self.listeners, factory, self._tls_context)

    def _serve_management(self, factory_of: Callable[[str], Factory]) -> None:
        """Serve the HTTP API with and without TLS; both share the limits of clients."""
        if MANAGEMENT in self.listeners.addresses:
            self.listeners.serve(MANAGEMENT, factory_of(MANAGEMENT))
        if MANAGEMENT_TLS in self.listeners.addresses:
            self.listeners.serve(MANAGEMENT_TLS, factory_of(MANAGEMENT_TLS), self._tls_context())

    def _serve(self, listener: ProtocolListener, factory: Any, passed_on: Any) -> None:
        tls, is_proxied = self._tls_context() if listener.is_tls else None, listener.is_proxied(self._settings)
        self.listeners.serve(listener.name, factory, tls, is_proxied=is_proxied, passed_on=passed_on)

    def _tls_context(self) -> TlsContext:
        """Return the TLS context of all listeners, created on first use."""
        if not self.tls_contexts:
            self.tls_contexts.append(TlsContext(self._settings.tls))
        return self.tls_contexts[0]
