"""The simulated plugins of one node, over all its lives."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from gateway.plugins.registry import FoundPlugin, PluginRegistry, find_plugins, load_plugins
from gateway.simulation.plugins.access import AccessPlugin
from gateway.simulation.plugins.moods import PluginMood, PluginMoods
from gateway.simulation.plugins.observers import ObservingPlugin
from gateway.simulation.plugins.routing import RoutedOutcome, RoutingPlugin
from gateway.simulation.world.world import World

OBSERVING: Final = "simulated-observers"
ROUTING: Final = "simulated-routing"
ACCESS: Final = "simulated-access"

#: Limits of faults within a minute: with the lower ones, plugins are switched off.
_FAULT_LIMITS: Final = (5, 20, 100)

_ORIGIN: Final = "the simulation"


@dataclass
class SimulatedPlugins:
    """Owns the moods of the plugins, and what they did. ``enabled`` are those that the node enables.

    ``fault_limit`` is the number of faults after which the node switches one off.
    ``outcomes`` has what the exchange type and its interceptor decided, by the body of the message. ``access`` is the
    plugin of the living node.
    """

    world: World
    enabled: set[str] = field(default_factory=set)
    outcomes: dict[bytes, RoutedOutcome] = field(default_factory=dict)
    mood_of_user: dict[str, PluginMood] = field(default_factory=dict)
    moods: dict[str, PluginMoods] = field(init=False)
    access: AccessPlugin = field(init=False)
    fault_limit: int = field(init=False)

    def __post_init__(self) -> None:
        seed = self.world.seed
        names = (OBSERVING, ROUTING, ACCESS)
        self.moods = {name: PluginMoods(self.world, Random(f"{seed} {name}")) for name in names}
        self.fault_limit = Random(f"{seed} fault limit").choice(_FAULT_LIMITS)

    def use(self, name: str) -> PluginMoods:
        """Let the node enable a plugin from its next start on; return its moods."""
        self.enabled.add(name)
        return self.moods[name]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that enable the plugins, and the limit of their faults."""
        if not self.enabled:
            return {}
        plugins: dict[str, Any] = {name: {} for name in sorted(self.enabled)}
        return {"vhosts": {"/": {"plugins": plugins}}, "plugins": {"fault_limit": self.fault_limit}}

    def load(self, directory: Path | None) -> PluginRegistry:
        """Return the plugins of a node that starts: the usual ones, and those that are enabled here."""
        for moods in self.moods.values():
            moods.forget()
        plugins = list(self._plugins())
        if directory is None and not self.enabled:
            return _usual_registry()
        registry = load_plugins(directory, is_lenient=True, found=_found_plugins() if directory is None else None)
        for name, plugin in plugins:
            if name in self.enabled:
                registry.add(FoundPlugin(name, _ORIGIN, lambda plugin=plugin: plugin))  # type: ignore[misc]  # mypy infers no defaults
        return registry

    def _plugins(self) -> Iterator[tuple[str, object]]:
        self.access = AccessPlugin(self.moods[ACCESS], self.mood_of_user)
        yield OBSERVING, ObservingPlugin(self.moods[OBSERVING])
        yield ROUTING, RoutingPlugin(self.moods[ROUTING], self.outcomes)
        yield ACCESS, self.access

    # The end

    @property
    def kinds(self) -> set[str]:
        """The kinds of the faults that plugins caused since the node's start."""
        return {kind for moods in self.moods.values() for kind in moods.caused}

    def faults_of(self, kind: str) -> range:
        """Return how many faults of a kind the node may have counted since its start, as a range."""
        caused = sum(moods.caused[kind] for moods in self.moods.values())
        return range(caused, caused + sum(moods.slow[kind] for moods in self.moods.values()) + 1)


@cache
def _usual_registry() -> PluginRegistry:
    """Return the usual plugins; nodes change them only with a plugin directory, so those of all runs share them."""
    return load_plugins(is_lenient=True, found=_found_plugins())


@cache
def _found_plugins() -> tuple[FoundPlugin, ...]:
    """Return the plugins of this process; a search reads the metadata of all packages."""
    return tuple(find_plugins())
