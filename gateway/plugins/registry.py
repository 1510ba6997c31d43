"""Finds the plugins, checks them, and gives every virtual host its own view of them.

The built-in plugins, those of other packages (entry points of the group ``gateway.plugins``) and the single files of
the plugin directory all come in through ``PluginRegistry.add``. For a broken one a ``ConfigurationError`` says where.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from pluggy import PluginManager

from gateway import hookspecs
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.messages.message import Value
from gateway.plugins.faults import broken, check_hooks, takes_settings
from gateway.plugins.files import load_file, mentions, plugin_files
from gateway.plugins.view import DuplicateAuthenticationMethod, DuplicateExchangeType, DuplicateOffer, PluginView

__all__ = [
    "ALWAYS_ON",
    "BUILT_IN_MODULES",
    "ENTRY_POINT_GROUP",
    "DuplicateAuthenticationMethod",
    "DuplicateExchangeType",
    "DuplicateOffer",
    "FoundPlugin",
    "PluginRegistry",
    "PluginView",
    "find_plugins",
    "load_plugins",
]

ENTRY_POINT_GROUP: Final = "gateway.plugins"

BUILT_IN_MODULES: Final[Mapping[str, str]] = {
    "exchange-direct": "gateway_exchanges.direct",
    "exchange-fanout": "gateway_exchanges.fanout",
    "exchange-topic": "gateway_exchanges.topic",
    "exchange-headers": "gateway_exchanges.headers",
    "exchange-local-random": "gateway_exchanges.local_random",
    "exchange-modulus-hash": "gateway_exchanges.modulus_hash",
    "exchange-jms-topic": "gateway_exchanges.jms_topic",
    "exchange-super-stream": "gateway_exchanges.super_stream",
    "auth-internal": "gateway_auth.internal",
    "auth-certificate": "gateway_auth.certificate",
    "auth-scram": "gateway_auth.scram",
    "tracing-firehose": "gateway_tracing.firehose",
}

#: What every virtual host has without asking for it.
ALWAYS_ON: Final = (
    "exchange-direct",
    "exchange-fanout",
    "exchange-topic",
    "exchange-headers",
    "exchange-super-stream",
    "auth-internal",
    "auth-certificate",
    "auth-scram",
    "tracing-firehose",
)


#: The hooks of plugins that have a say in who is let in.
ACCESS_HOOKS: Final = frozenset({"gateway_authenticators", "gateway_authentication_methods", "gateway_authorizers"})


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plugin that was found but not loaded. ``origin`` says where, for people; ``load`` may raise anything.

    ``file`` is what it is read from, if that is a single file.
    """

    name: str
    origin: str
    load: Callable[[], object]
    file: Path | None = None


def find_plugins(plugins_dir: Path | None = None) -> Iterator[FoundPlugin]:
    """Yield every plugin there is: built-ins, then installed packages by name, then the files of ``plugins_dir``.

    :raises ConfigurationError: when ``plugins_dir`` is given and not a directory, or not safe to execute files from.
    """
    for name, module in BUILT_IN_MODULES.items():
        yield FoundPlugin(name, f"module {module}", partial(importlib.import_module, module))
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        yield FoundPlugin(point.name, _entry_point_origin(point), point.load)
    if plugins_dir is not None:
        for path in plugin_files(plugins_dir):
            yield FoundPlugin(path.stem, str(path), partial(load_file, path), path)


def load_plugins(plugins_dir: Path | None = None, *, is_lenient: bool = False) -> "PluginRegistry":
    """Return a registry of everything ``find_plugins`` finds; ``is_lenient`` goes on without those that are broken.

    :raises ConfigurationError: for the first broken one, and when the plugin directory cannot be used.
    """
    registry = PluginRegistry()
    for found in find_plugins(plugins_dir):
        try:
            registry.add(found)
        except ConfigurationError as error:
            if not is_lenient:
                raise
            registry.set_aside(found, str(error))
    return registry


class PluginRegistry:
    """The plugins of this process by name, whether or not a virtual host enables them.

    ``broken`` holds those that cannot be loaded, and why.
    """

    def __init__(self) -> None:
        self._plugins = PluginManager(hookspecs.PROJECT)
        self._plugins.add_hookspecs(hookspecs)
        self._origins: dict[str, str] = {}
        self._decides_access: set[str] = set()
        self.broken: dict[str, str] = {}

    @property
    def origins(self) -> Mapping[str, str]:
        """Plugin name to where it came from, in the order they were added."""
        return self._origins

    def add(self, found: FoundPlugin) -> None:
        """Load a plugin and take it in.

        :raises ConfigurationError: when the name is taken, loading fails, or a hook is not as its specification says.
        """
        if found.name in self._origins:
            raise ConfigurationError(
                f"plugin {found.name!r} ({found.origin}): {self._origins[found.name]} has the same plugin name"
            )
        try:
            plugin = found.load()
        except BaseException as error:  # foreign code: whatever it raises, the operator must learn which
            raise broken(found.name, found.origin, error) from error
        check_hooks(self._plugins, found.name, found.origin, plugin)
        self._register(found, plugin)

    def set_aside(self, found: FoundPlugin, reason: str) -> None:
        """Remember that a plugin cannot be loaded; one of the same name that was loaded before is used."""
        self.broken[found.name] = reason
        if found.file is None or mentions(found.file, ACCESS_HOOKS):
            self._decides_access.add(found.name)

    def decides_access(self, name: str) -> bool:
        """Whether a plugin has a say in who is let in; so may one that is not known."""
        if name in self._origins:
            callers = self._plugins.get_hookcallers(self._plugins.get_plugin(name)) or ()
            return any(caller.name in ACCESS_HOOKS for caller in callers)
        return name in self._decides_access or name not in self.broken

    def view(self, vhost: str, enabled: Mapping[str, Value], *, is_lenient: bool = False) -> "PluginView":
        """Return what the virtual host sees.

        :param enabled: plugin name to its settings, in the order the plugins shall be asked.
        :param is_lenient: go on without plugins that cannot be used; the view has them as ``inert``.
        :raises ConfigurationError: when a name is unknown, settings are not a table or nobody reads them, or a plugin
            fails; ``DuplicateExchangeType`` when two offer the same exchange type.
        """
        inert: dict[str, str] = {}
        settings_by_name: dict[str, Mapping[str, Value]] = {
            name: {} for name in ALWAYS_ON if name in self._origins and name not in enabled
        }
        for name, settings in enabled.items():
            try:
                settings_by_name[name] = self._checked_settings(vhost, name, settings)
            except ConfigurationError as error:
                if not is_lenient:
                    raise
                inert[name] = str(error)
        inert |= {name: self.broken[name] for name in ALWAYS_ON if name in self.broken and name not in self._origins}
        return PluginView(
            vhost, self._plugins, self._origins, settings_by_name, self.decides_access, inert if is_lenient else None
        )

    def _register(self, found: FoundPlugin, plugin: object) -> None:
        try:
            self._plugins.register(plugin, found.name)
        except ValueError as error:  # the same object under two names: two entry points may lead to one module
            raise ConfigurationError(
                f"plugin {found.name!r} ({found.origin}): is {self._plugins.get_name(plugin)!r} under another name"
            ) from error
        self._origins[found.name] = found.origin

    def _checked_settings(self, vhost: str, name: str, settings: Value) -> Mapping[str, Value]:
        if name not in self._origins and name in self.broken:
            raise ConfigurationError(self.broken[name])
        if name not in self._origins:
            raise ConfigurationError(
                f"virtual host {vhost!r} enables the plugin {name!r}, which was not found; "
                f"there are {', '.join(sorted(self._origins))}"
            )
        if not isinstance(settings, Mapping):
            raise ConfigurationError(
                f"virtual host {vhost!r}: the settings of plugin {name!r} must be a table, not {settings!r}"
            )
        if settings and not takes_settings(self._plugins, self._plugins.get_plugin(name)):
            raise ConfigurationError(
                f"virtual host {vhost!r}: plugin {name!r} has no settings, but was given {', '.join(sorted(settings))}"
            )
        return settings


def _entry_point_origin(point: EntryPoint) -> str:
    distribution = point.dist.name if point.dist is not None else "an unknown package"
    return f"{point.value} of {distribution}"
