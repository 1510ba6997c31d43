"""The interface of a virtual host's plugins to the kernel: exchange types, tracers and interceptors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.features.plugin_feature import QueueFeatureType
from gateway.kernel.interception.interceptor import Interceptor
from gateway.kernel.messages.message import Value
from gateway.kernel.routing.exchange_type import ExchangeTypes
from gateway.kernel.vhosts.event_listeners import EventListener
from gateway.kernel.vhosts.metric_source import MetricSource
from gateway.kernel.vhosts.traced_vhost import VhostTracingScope


class VhostPlugins(Protocol):
    """Exchange types, queue features, tracers and interceptors of the plugins that a virtual host enables."""

    @property
    def exchange_types(self) -> ExchangeTypes:
        """Factories by exchange type."""
        ...

    @property
    def queue_features(self) -> Sequence[QueueFeatureType]:
        """The features that queues may request by their settings; each setting is offered once."""
        ...

    def plugin_of(self, part: object) -> str:
        """Return the plugin that supplies an exchange type, by its name, or an object; ``""`` if none does."""
        ...

    def tracers(self, vhost: VhostTracingScope) -> Sequence[Tracer]:
        """Return new tracers for a virtual host; called when it starts, and when its plugins change."""
        ...

    def interceptors(self, vhost: VhostTracingScope) -> Sequence[Interceptor]:
        """Return new interceptors for a virtual host; called when it starts, and when its plugins change."""
        ...

    def event_listeners(self, vhost: VhostTracingScope) -> Sequence[EventListener]:
        """Return new event listeners for a virtual host; called when it starts, and when its plugins change."""
        ...

    def offer_services(self, vhost: VhostTracingScope) -> None:
        """Create what the plugins offer to operators; called after the others. The kernel does not use it."""
        ...

    def metric_sources(self, vhost: VhostTracingScope) -> Sequence[MetricSource]:
        """Return new sources of metrics for a virtual host; called when it starts, and when its plugins change."""
        ...


@dataclass(frozen=True, slots=True)
class PluginParts:
    """The objects that observe and change the messages of one virtual host, observe its events, or have metrics."""

    tracers: Sequence[Tracer] = ()
    interceptors: Sequence[Interceptor] = ()
    event_listeners: Sequence[EventListener] = ()
    metric_sources: Sequence[MetricSource] = ()

    @classmethod
    def of(cls, plugins: VhostPlugins, vhost: VhostTracingScope) -> "PluginParts":
        """Return the objects that the plugins supply, and create their resources, verbs and panels."""
        parts = cls(
            plugins.tracers(vhost),
            plugins.interceptors(vhost),
            plugins.event_listeners(vhost),
            plugins.metric_sources(vhost),
        )
        plugins.offer_services(vhost)
        return parts


Plugins: TypeAlias = Callable[[str, Mapping[str, Value]], VhostPlugins]
"""Called once per virtual host that starts, with its name and the plugins of its record.

A plugin's value is its settings, or ``False`` if it is disabled.
"""
