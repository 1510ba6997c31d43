"""The interface of a virtual host's plugins to the kernel: exchange types, tracers and interceptors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.interception.interceptor import Interceptor
from gateway.kernel.messages.message import Value
from gateway.kernel.routing.exchange_type import ExchangeTypes
from gateway.kernel.vhosts.traced_vhost import VhostTracingScope


class VhostPlugins(Protocol):
    """Exchange types, tracers and interceptors of the plugins that a virtual host enables."""

    @property
    def exchange_types(self) -> ExchangeTypes:
        """Factories by exchange type."""
        ...

    def plugin_of(self, part: object) -> str:
        """Return the plugin that supplies an exchange type, by its name, or an object; ``""`` if none does."""
        ...

    def tracers(self, vhost: VhostTracingScope) -> Sequence[Tracer]:
        """Return new tracers for a virtual host; called once, when it starts."""
        ...

    def interceptors(self, vhost: VhostTracingScope) -> Sequence[Interceptor]:
        """Return new interceptors for a virtual host; called once, when it starts."""
        ...


Plugins: TypeAlias = Callable[[str, Mapping[str, Mapping[str, Value]]], VhostPlugins]
"""Called once per virtual host that starts, with its name and the settings of its enabled plugins."""
