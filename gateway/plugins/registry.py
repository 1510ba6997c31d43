"""Discovery and validation of plugins, and a separate view of them for each virtual host.

Built-in plugins, plugins of other packages (entry points of the group ``gateway.plugins``) and files of the plugin
directory all enter by ``PluginRegistry.add``. The ``ConfigurationError`` for a broken plugin contains its file and
line.
"""

import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel

from gateway import hookspecs
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.messages.message import Value
from gateway.plugins.built_in import ALWAYS_ON, BUILT_IN_MODULES
from gateway.plugins.faults import broken, check_hooks, takes_settings
from gateway.plugins.files import load_file, mentions, plugin_files, read_plugin
from gateway.plugins.manager import HookManager
from gateway.plugins.settings import secret_settings, settings_model, validated
from gateway.plugins.view import (
    DuplicateAuthenticationMethod,
    DuplicateExchangeType,
    DuplicateOffer,
    EnabledPlugin,
    PluginView,
)

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

#: The hooks that decide on access.
ACCESS_HOOKS: Final = frozenset(
    {"gateway_authenticators", "gateway_authentication_methods", "gateway_authorizers", "gateway_access_wrappers"}
)


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plugin that was found but not loaded. ``origin`` is a description of its source; ``load`` may raise anything.

    ``file`` is its path if it is a single file.
    """

    name: str
    origin: str
    load: Callable[[], object]
    file: Path | None = None


def find_plugins(plugins_dir: Path | None = None) -> Iterator[FoundPlugin]:
    """Yield all plugins: built-ins, then installed packages by name, then the files of ``plugins_dir``.

    :raises ConfigurationError: if ``plugins_dir`` is not a directory, or not safe to execute files from.
    """
    for name, module in BUILT_IN_MODULES.items():
        yield FoundPlugin(name, f"module {module}", partial(importlib.import_module, module))
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        yield FoundPlugin(point.name, _entry_point_origin(point), point.load)
    if plugins_dir is not None:
        for path in plugin_files(plugins_dir):
            yield FoundPlugin(path.stem, str(path), partial(load_file, path), path)


def load_plugins(
    plugins_dir: Path | None = None, *, is_lenient: bool = False, found: Iterable[FoundPlugin] | None = None
) -> "PluginRegistry":
    """Return a registry of all plugins that ``find_plugins`` yields, or of ``found``; ``is_lenient`` skips broken ones.

    :raises ConfigurationError: for the first broken plugin, and if the plugin directory cannot be used.
    """
    registry = PluginRegistry(plugins_dir)
    for each in find_plugins(plugins_dir) if found is None else found:
        try:
            registry.add(each)
        except ConfigurationError as error:
            if not is_lenient:
                raise
            registry.set_aside(each, str(error))
    return registry


@dataclass(frozen=True, slots=True)
class PluginVersion:
    """One loaded version of a plugin. ``digest`` identifies the source of a file; it is empty for a package."""

    number: int
    plugin: object
    digest: str = ""


class PluginRegistry:
    """The plugins of this process by name, enabled or not, and the versions of files that were loaded since the start.

    ``broken`` maps the plugins that cannot be loaded to the reasons.
    """

    def __init__(self, plugins_dir: Path | None = None) -> None:
        self.plugins_dir = plugins_dir
        self._plugins = HookManager(hookspecs.PROJECT)
        self._plugins.add_hookspecs(hookspecs)
        self._origins: dict[str, str] = {}
        self._versions: dict[str, list[PluginVersion]] = {}
        self._file_by_name: dict[str, Path] = {}
        self._decides_access: set[str] = set()
        self.broken: dict[str, str] = {}

    @property
    def origins(self) -> Mapping[str, str]:
        """Plugin names with their sources, in the order they were added."""
        return self._origins

    def add(self, found: FoundPlugin) -> None:
        """Load and register a plugin.

        :raises ConfigurationError: if the name is taken, loading fails, or a hook does not match its specification.
        """
        if found.name in self._origins:
            raise ConfigurationError(
                f"plugin {found.name!r} ({found.origin}): {self._origins[found.name]} has the same plugin name"
            )
        source = b"" if found.file is None else found.file.read_bytes()
        self._load(found.name, found.origin, found.load, sha256(source).hexdigest() if source else "")
        self._origins[found.name] = found.origin
        if found.file is not None:
            self._file_by_name[found.name] = found.file

    # Versions

    def versions(self, name: str) -> list[PluginVersion]:
        """Return the loaded versions of a plugin, the oldest first; none for an unknown plugin."""
        return list(self._versions.get(name, ()))

    def load_file_again(self, name: str) -> PluginVersion:
        """Return the version of a plugin that is in its file of ``plugins_dir`` now, loaded if it is new.

        :raises ConfigurationError: if it is not a file, or loading fails; loaded versions stay usable.
        """
        path = self._plugin_file(name)
        try:
            source = read_plugin(path)
        except OSError as error:
            raise ConfigurationError(f"plugin {name!r}: cannot read {path}: {error.strerror}") from None
        digest = sha256(source).hexdigest()
        versions = self._versions.get(name, [])
        if (known := next((version for version in versions if version.digest == digest), None)) is not None:
            return known
        number = versions[-1].number + 1 if versions else 1
        version = self._load(name, str(path), partial(load_file, path, source, number), digest, number)
        self._origins[name] = str(path)
        self._file_by_name[name] = path
        self.broken.pop(name, None)
        self._decides_access.discard(name)
        return version

    def forget_versions(self, name: str, in_use: Collection[int]) -> None:
        """Unload the versions of a plugin that no virtual host uses, except the newest."""
        for version in self._versions.get(name, [])[:-1]:
            if version.number not in in_use:
                self._plugins.unregister(version.plugin)
                self._versions[name].remove(version)

    def is_file(self, name: str) -> bool:
        """Return whether a plugin is a file of ``plugins_dir``."""
        return name in self._file_by_name

    def _plugin_file(self, name: str) -> Path:
        if name in self._file_by_name:
            return self._file_by_name[name]
        if name in self._origins:
            raise ConfigurationError(
                f"plugin {name!r} ({self._origins[name]}) is not a file of plugins_dir; a restart loads its new version"
            )
        if self.plugins_dir is None:
            raise ConfigurationError(
                f"plugin {name!r} was not found{self._suggestion(name)}, and there is no plugins_dir"
            )
        path = next((path for path in plugin_files(self.plugins_dir) if path.stem == name), None)
        if path is None:
            raise ConfigurationError(
                f"plugin {name!r} was not found{self._suggestion(name)}; {self.plugins_dir} has no {name}.py"
            )
        return path

    def _suggestion(self, name: str) -> str:
        close = get_close_matches(name, self._origins, n=1)
        return f" (did you mean {close[0]!r}?)" if close else ""

    def _load(self, name: str, origin: str, load: Callable[[], object], digest: str, number: int = 1) -> PluginVersion:
        """Execute and register one version of a plugin. :raises ConfigurationError: if it is broken."""
        try:
            plugin = load()
        except BaseException as error:  # a plugin may raise anything; the error must name the plugin
            raise broken(name, origin, error) from error
        check_hooks(self._plugins, name, origin, plugin)
        try:
            self._plugins.register(plugin, name if number == 1 else f"{name}@{number}")
        except ValueError as error:  # two entry points may refer to one module
            raise ConfigurationError(
                f"plugin {name!r} ({origin}): is {self._plugins.get_name(plugin)!r} under another name"
            ) from error
        version = PluginVersion(number, plugin, digest)
        self._versions.setdefault(name, []).append(version)
        return version

    def _version(self, name: str, number: int | None = None) -> PluginVersion:
        """Return a version of a known plugin, by default the newest that was loaded."""
        versions = self._versions[name]
        return next((version for version in versions if version.number == number), versions[-1])

    def plugin_at(self, file: str, module: str) -> str:
        """Return the plugin whose code is in a file or module; ``""`` if there is none.

        The modules of a package belong to its plugin, if it has only one.
        """
        if file in self._origins.values():
            return next(name for name, origin in self._origins.items() if origin == file)
        own = {name: getattr(versions[-1].plugin, "__name__", "") for name, versions in self._versions.items()}
        found = [name for name, plugin_module in own.items() if plugin_module == module]
        package = module.partition(".")[0]
        found = found or [name for name, plugin_module in own.items() if plugin_module.partition(".")[0] == package]
        return found[0] if len(found) == 1 else ""

    def set_aside(self, found: FoundPlugin, reason: str) -> None:
        """Record that a plugin cannot be loaded; a plugin of the same name that was loaded before stays in use."""
        self.broken[found.name] = reason
        if found.file is None or mentions(found.file, ACCESS_HOOKS):
            self._decides_access.add(found.name)

    def decides_access(self, name: str) -> bool:
        """Whether a plugin decides on access; ``True`` also for an unknown plugin."""
        if name in self._origins:
            plugins = [version.plugin for version in self._versions[name]]
            callers = [caller for plugin in plugins for caller in self._plugins.get_hookcallers(plugin) or ()]
            return any(caller.name in ACCESS_HOOKS for caller in callers)
        return name in self._decides_access or name not in self.broken

    def view(
        self,
        vhost: str,
        enabled: Mapping[str, Value],
        *,
        is_lenient: bool = False,
        versions: Mapping[str, int] = MappingProxyType({}),
        former: "PluginView | None" = None,
        renewed: str = "",
    ) -> "PluginView":
        """Return the plugins of a virtual host.

        :param enabled: plugin names with their settings, in the order of the calls.
        :param versions: the numbers of the versions to use; by default the newest.
        :param former: the view to replace; the objects of plugins that do not change are used again.
        :param renewed: the plugin whose objects are created again even if it does not change.
        :param is_lenient: skip plugins that cannot be used and put them into the view's ``inert``.
        :raises ConfigurationError: if a name is unknown, settings are not a table or the plugin takes none, or a plugin
            fails or its model refuses the settings; ``DuplicateExchangeType`` if two plugins offer the same exchange
            type.
        """
        inert: dict[str, str] = {}
        used: dict[str, EnabledPlugin] = {}
        unnamed: dict[str, Value] = {name: {} for name in ALWAYS_ON if name in self._origins and name not in enabled}
        for name, settings in {**unnamed, **enabled}.items():
            try:
                used[name] = self._enabled(vhost, name, settings, versions.get(name))
            except ConfigurationError as error:
                if not is_lenient:
                    raise
                inert[name] = str(error)
        inert |= {name: self.broken[name] for name in ALWAYS_ON if name in self.broken and name not in self._origins}
        wrappable = [name for name in used if name not in ALWAYS_ON and self.decides_access(name)]
        failed = inert if is_lenient else None
        return PluginView(vhost, self._plugins, used, self.decides_access, failed, former, wrappable, renewed)

    def settings_model(self, name: str, number: int | None = None) -> type[BaseModel] | None:
        """Return the model of a plugin's settings, ``None`` if it has none. :raises ConfigurationError: if it fails."""
        try:
            return settings_model(self._plugins, self._version(name, number).plugin)
        except BaseException as error:  # a plugin may raise anything; the error must name the plugin
            raise broken(name, self._origins[name], error) from error

    def secret_settings(self, name: str) -> set[str]:
        """Return the names of a plugin's settings that must not be shown."""
        model = self.settings_model(name)
        return set() if model is None else secret_settings(model)

    def hooks(self, name: str) -> list[str]:
        """Return the hooks that the newest version of a plugin implements."""
        callers = self._plugins.get_hookcallers(self._version(name).plugin) or ()
        return sorted(caller.name for caller in callers)

    def description(self, name: str) -> str:
        """Return the first paragraph of a plugin's documentation, without the plugin's name before it."""
        first = (inspect.getdoc(self._version(name).plugin) or "").split("\n\n")[0]
        return " ".join(first.split()).removeprefix(f"{name}: ")

    def takes_settings(self, name: str) -> bool:
        """Return whether a plugin has settings."""
        return self.settings_model(name) is not None or takes_settings(self._plugins, self._version(name).plugin)

    def _enabled(self, vhost: str, name: str, settings: Value, number: int | None) -> EnabledPlugin:
        """Return a plugin with its settings as its hooks get them."""
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
        version = self._version(name, number)
        model = self.settings_model(name, version.number)
        checked: object = settings
        if model is not None:
            checked = self._validated(vhost, name, model, settings)
        elif settings and not takes_settings(self._plugins, version.plugin):
            raise ConfigurationError(
                f"virtual host {vhost!r}: plugin {name!r} has no settings, but was given {', '.join(sorted(settings))}"
            )
        return EnabledPlugin(version.plugin, self._origins[name], checked, version.number)

    def _validated(self, vhost: str, name: str, model: type[BaseModel], settings: Mapping[str, Value]) -> BaseModel:
        try:
            return validated(model, settings)
        except ConfigurationError as error:
            where = f"virtual host {vhost!r}: the settings of plugin {name!r}: "
            raise ConfigurationError("\n".join(where + line for line in str(error).split("\n"))) from None
        except BaseException as error:  # validators are the plugin's code
            raise broken(name, self._origins[name], error, f" for virtual host {vhost!r}") from error


def _entry_point_origin(point: EntryPoint) -> str:
    distribution = point.dist.name if point.dist is not None else "an unknown package"
    return f"{point.value} of {distribution}"
