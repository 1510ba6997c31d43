"""What the plugins of a virtual host supply to the kernel: exchange types and tracers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.messages.message import Value
from gateway.kernel.routing.exchange_type import ExchangeTypes
from gateway.kernel.vhosts.traced_vhost import VhostTracingScope


class VhostPlugins(Protocol):
    """What the plugins that a virtual host enables supply to the kernel."""

    @property
    def exchange_types(self) -> ExchangeTypes:
        """Exchange type name to factory."""
        ...

    def plugin_of(self, part: object) -> str:
        """Return the plugin that supplies an exchange type, by its name, or an object; ``""`` where none does."""
        ...

    def tracers(self, vhost: VhostTracingScope) -> Sequence[Tracer]:
        """Return new tracers for a virtual host; asked once, when it starts."""
        ...


Plugins: TypeAlias = Callable[[str, Mapping[str, Mapping[str, Value]]], VhostPlugins]
"""Asked once per virtual host that starts: its name and what it enables, to its view."""
