"""The plugins that the virtual hosts of one node use, and the objects that they supply."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from gateway.kernel.archives.tracing import VhostTracing
from gateway.kernel.broker.connections import Connections, Peer
from gateway.kernel.events import Events
from gateway.kernel.faults import Faults
from gateway.kernel.plugin_times import CallTime
from gateway.kernel.slow_calls import SlowCalls
from gateway.kernel.vhosts.event_listeners import EventListeners
from gateway.kernel.vhosts.metric_source import PluginMetrics
from gateway.kernel.vhosts.plugins import PluginParts
from gateway.kernel.vhosts.traced_vhost import VhostTracingScope

if TYPE_CHECKING:
    from gateway.kernel.archives.tracer import Tracer
    from gateway.kernel.budget import TurnBudget
    from gateway.kernel.clock import Background
    from gateway.kernel.vhosts.plugins import VhostPlugins
    from gateway.kernel.vhosts.virtual_host import VirtualHost


class PluginsInUse:
    """The plugins of every virtual host, by its name, with their tracers, event listeners and ``metrics``.

    Exchange types belong to the virtual host's exchanges, queue features to its queues, and interceptors to its
    interception. ``faults`` contains the exceptions of all of them, ``slow_calls`` reports their long calls.
    """

    def __init__(
        self, node: str, events: Events, budget: "TurnBudget", connections: Connections, background: "Background"
    ) -> None:
        self._node = node
        self._connections = connections
        self._background = background
        self._view_by_vhost: dict[str, VhostPlugins] = {}
        self._tracing_by_vhost: dict[str, VhostTracing] = {}
        self.faults = Faults(events, self.plugin_of)
        self.slow_calls = SlowCalls(budget, self.faults)
        self.event_listeners = EventListeners(self.faults, self.slow_calls)
        self.metrics = PluginMetrics(self.faults, self.slow_calls)
        events.subscribe(self.event_listeners.pass_on, wants=self.event_listeners.want)

    def add(self, vhost: "VirtualHost", view: "VhostPlugins") -> PluginParts:
        """Add a virtual host that starts; return the objects that its plugins supply, for ``use``."""
        self._view_by_vhost[vhost.name] = view
        return PluginParts.of(view, self.scope_of(vhost))

    def use(self, vhost: "VirtualHost", view: "VhostPlugins", parts: PluginParts) -> None:
        """Put these plugins and their objects in use, instead of earlier ones of the virtual host."""
        self._view_by_vhost[vhost.name] = view
        tracing = self._tracing_by_vhost.get(vhost.name)
        if tracing is None:
            tracing = VhostTracing(vhost.name, parts.tracers, vhost.trace_events, self.faults, self.slow_calls)
            self._tracing_by_vhost[vhost.name] = tracing
        else:
            tracing.use(parts.tracers)
        vhost.interception.apply(parts.interceptors)
        vhost.policy_applier.use_features(view.queue_features)
        self.event_listeners.use(vhost.name, parts.event_listeners)
        self.metrics.use(vhost.name, parts.metric_sources)

    def remove(self, vhost: "VirtualHost") -> None:
        """Remove a virtual host that was deleted."""
        del self._view_by_vhost[vhost.name], self._tracing_by_vhost[vhost.name]
        self.event_listeners.use(vhost.name, ())
        self.metrics.use(vhost.name, ())
        vhost.time_by_exchange_type.clear()

    def scope_of(self, vhost: "VirtualHost") -> VhostTracingScope:
        """Return the interface of a virtual host to its tracers, interceptors and event listeners."""
        return VhostTracingScope(
            vhost.name,
            self._node,
            vhost.publish_trace,
            vhost.exchanges.provide_internal,
            vhost.is_bound,
            vhost.publish_to_queue,
            partial(self._close_connections, vhost.name),
        )

    def _close_connections(self, vhost: str, user: str, reason: str) -> None:
        """Close the connections of a user to a virtual host, in later turns."""

        def is_meant(peer: Peer) -> bool:
            return peer.vhost_name == vhost and peer.user_name == user

        self._background.add(self._connections.force_closes(reason, is_meant))

    def plugin_of(self, vhost: str, part: object) -> str:
        """Return the plugin that supplies a component of a virtual host; ``""`` if unknown."""
        view = self._view_by_vhost.get(vhost)
        return view.plugin_of(part) if view is not None else ""

    def times(self, vhost: "VirtualHost") -> Iterator[tuple[object, str, CallTime]]:
        """Yield the components of plugins that were called in a virtual host, with the method and its times.

        An exchange type is given by its name. Sampled calls are counted once.
        """
        for type_name, time in vhost.time_by_exchange_type.items():
            yield type_name, "route", time
        for chain in (vhost.interception.publishing, vhost.interception.delivering):
            if chain is not None:
                for part, time in chain.times.part_times:
                    yield part, chain.times.method, time
        for part, time in self._tracing_by_vhost[vhost.name].part_times:
            yield part, "published, delivered", time
        for part, time in self.event_listeners.times_in(vhost.name):
            yield part, "on_event", time
        for part, time in self.metrics.times_in(vhost.name):
            yield part, "metrics", time
        for part, time in vhost.policy_applier.feature_times:
            yield part, "queue feature", time

    def add_tracer(self, vhost: "VirtualHost", tracer: "Tracer") -> None:
        """Call a tracer that no plugin supplies, until it is removed or the virtual host is deleted."""
        self._tracing_by_vhost[vhost.name].add(tracer)
        self.apply_tracing(vhost)

    def remove_tracer(self, vhost: "VirtualHost", tracer: "Tracer") -> None:
        """Remove a tracer that was added."""
        self._tracing_by_vhost[vhost.name].remove(tracer)
        self.apply_tracing(vhost)

    def apply_tracing(self, vhost: "VirtualHost") -> None:
        """Connect a virtual host to its tracing while a tracer or a record of events is active."""
        tracing = self._tracing_by_vhost[vhost.name]
        tracing.tells_tracers = vhost.record.tracing
        vhost.tracing = tracing.in_use
