"""Finds the plugins, checks them, and gives every virtual host its own view of them.

The built-in plugins, those of other packages (entry points of the group ``gateway.plugins``) and the single files of
the plugin directory all come in through ``PluginRegistry.add``. For a broken one a ``ConfigurationError`` says where.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pluggy import PluginManager

from gateway import hookspecs
from gateway.access.verifying import PasswordVerifier
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.message import Value
from gateway.kernel.ports import ExchangeFactory, Tracer
from gateway.plugin_faults import broken, check_hooks, takes_settings

if TYPE_CHECKING:
    from gateway.access import AuthenticationMethod, Authenticator, Authorizer, PasswordCheck
    from gateway.kernel.directory import Directory

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


class DuplicateOffer(ConfigurationError):
    """Two plugins of one virtual host offer a thing of the same ``kind`` and name."""

    kind: ClassVar[str]


class DuplicateExchangeType(DuplicateOffer):
    """Two plugins of one virtual host offer an exchange type of the same name."""

    kind = "exchange type"


class DuplicateAuthenticationMethod(DuplicateOffer):
    """Two plugins of one virtual host offer an authentication method of the same name."""

    kind = "authentication method"


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plugin that was found but not loaded. ``origin`` says where, for people; ``load`` may raise anything."""

    name: str
    origin: str
    load: Callable[[], object]


def find_plugins(plugins_dir: Path | None = None) -> Iterator[FoundPlugin]:
    """Yield every plugin there is: built-ins, then installed packages by name, then the files of ``plugins_dir``.

    :raises ConfigurationError: when ``plugins_dir`` is given and not a directory.
    """
    for name, module in BUILT_IN_MODULES.items():
        yield FoundPlugin(name, f"module {module}", partial(importlib.import_module, module))
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        yield FoundPlugin(point.name, _entry_point_origin(point), point.load)
    if plugins_dir is not None:
        if not plugins_dir.is_dir():
            raise ConfigurationError(f"plugins_dir {plugins_dir} is not a directory")
        for path in sorted(plugins_dir.glob("*.py")):
            yield FoundPlugin(path.stem, str(path), partial(_load_file, path))


def load_plugins(plugins_dir: Path | None = None) -> "PluginRegistry":
    """Return a registry of everything ``find_plugins`` finds. :raises ConfigurationError: for the first broken one."""
    registry = PluginRegistry()
    for found in find_plugins(plugins_dir):
        registry.add(found)
    return registry


class PluginRegistry:
    """The plugins of this process by name, whether or not a virtual host enables them."""

    def __init__(self) -> None:
        self._plugins = PluginManager(hookspecs.PROJECT)
        self._plugins.add_hookspecs(hookspecs)
        self._origins: dict[str, str] = {}

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
        except (Exception, SystemExit) as error:  # foreign code: whatever it raises, the operator must learn which
            raise broken(found.name, found.origin, error) from error
        check_hooks(self._plugins, found.name, found.origin, plugin)
        self._register(found, plugin)

    def view(self, vhost: str, enabled: Mapping[str, Value]) -> "PluginView":
        """Return what the virtual host sees.

        :param enabled: plugin name to its settings, in the order the plugins shall be asked.
        :raises ConfigurationError: when a name is unknown, settings are not a table or nobody reads them, or a plugin
            fails; ``DuplicateExchangeType`` when two offer the same exchange type.
        """
        settings_by_name: dict[str, Mapping[str, Value]] = {
            name: {} for name in ALWAYS_ON if name in self._origins and name not in enabled
        }
        for name, settings in enabled.items():
            settings_by_name[name] = self._checked_settings(vhost, name, settings)
        return PluginView(vhost, self._plugins, self._origins, settings_by_name)

    def _register(self, found: FoundPlugin, plugin: object) -> None:
        try:
            self._plugins.register(plugin, found.name)
        except ValueError as error:  # the same object under two names: two entry points may lead to one module
            raise ConfigurationError(
                f"plugin {found.name!r} ({found.origin}): is {self._plugins.get_name(plugin)!r} under another name"
            ) from error
        self._origins[found.name] = found.origin

    def _checked_settings(self, vhost: str, name: str, settings: Value) -> Mapping[str, Value]:
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


class PluginView:
    """The plugins of one virtual host. Each method asks its hook anew, so each is called once per start."""

    def __init__(
        self,
        vhost: str,
        plugins: PluginManager,
        origins: Mapping[str, str],
        settings_by_name: Mapping[str, Mapping[str, Value]],
    ) -> None:
        self._vhost = vhost
        self._plugins = plugins
        self._origins = origins
        self._settings_by_name = settings_by_name
        self._plugin_by_type: dict[str, str] = {}
        self._suppliers: list[tuple[object, str]] = []
        self.exchange_types: dict[str, ExchangeFactory] = self._merged_exchange_types()

    @property
    def names(self) -> list[str]:
        """The plugins in use, in the order they are asked."""
        return list(self._settings_by_name)

    def plugin_of(self, part: object) -> str:
        """Return the plugin that supplies an exchange type, by its name, or an object; ``""`` where none does."""
        if isinstance(part, str):
            return self._plugin_by_type.get(part, "")
        return next((plugin for supplied, plugin in self._suppliers if supplied is part), "")

    def authenticators(
        self, directory: "Directory", passwords: "PasswordCheck | None" = None
    ) -> "tuple[Authenticator, ...]":
        """Ask for authenticators; without ``passwords`` these are checked on the spot.

        :raises ConfigurationError: when a plugin fails.
        """
        check = PasswordVerifier() if passwords is None else passwords
        return self._joined("gateway_authenticators", vhost=self._vhost, directory=directory, passwords=check)

    def authentication_methods(self, directory: "Directory") -> "dict[str, AuthenticationMethod]":
        """Ask for authentication methods, by name. :raises ConfigurationError: when a plugin fails, or two clash."""
        hook = "gateway_authentication_methods"
        asked = {"vhost": self._vhost, "directory": directory}
        methods: dict[str, AuthenticationMethod] = {}
        for plugin, name, method in self._offers(hook, DuplicateAuthenticationMethod, **asked):
            if not callable(getattr(method, "begin", None)):
                raise self._fault(plugin, f"the authentication method {name!r} has no begin(): {method!r}")
            methods[name] = method
            self._suppliers.append((method, plugin))
        return methods

    def authorizers(
        self, directory: "Directory", permissions_changed: Callable[[], None] = lambda: None
    ) -> "tuple[Authorizer, ...]":
        """Ask for authorizers. :raises ConfigurationError: when a plugin fails."""
        return self._joined(
            "gateway_authorizers", vhost=self._vhost, directory=directory, permissions_changed=permissions_changed
        )

    def tracers(self, vhost: hookspecs.TracedVhost) -> tuple[Tracer, ...]:
        """Ask for tracers. :raises ConfigurationError: when a plugin fails."""
        return self._joined("gateway_tracers", vhost=vhost)

    def _merged_exchange_types(self) -> dict[str, ExchangeFactory]:
        factories: dict[str, ExchangeFactory] = {}
        for plugin, name, factory in self._offers("gateway_exchange_types", DuplicateExchangeType, vhost=self._vhost):
            if not callable(factory):
                raise self._fault(plugin, f"the factory of exchange type {name!r} cannot be called: {factory!r}")
            factories[name] = factory
            self._plugin_by_type[name] = plugin
        return factories

    def _offers(
        self, hook: str, duplicate: type[DuplicateOffer], **asked: object
    ) -> Iterator[tuple[str, str, Any]]:  # Any: the specification of the hook says which
        """Yield who offers what under which name. :raises DuplicateOffer: for a name that was taken."""
        owners: dict[str, str] = {}
        for plugin, offered in self._answers(hook, Mapping, **asked):
            for name, item in offered.items():
                if name in owners:
                    raise duplicate(self._clash(duplicate.kind, name, owners[name], plugin))
                owners[name] = plugin
                yield plugin, name, item

    def _joined(self, hook: str, **asked: object) -> tuple[Any, ...]:  # Any: the specification of the hook says which
        supplied = [(item, name) for name, answer in self._answers(hook, Sequence, **asked) for item in answer]
        self._suppliers += supplied
        return tuple(item for item, _ in supplied)

    def _answers(self, hook: str, shape: type, **asked: object) -> Iterator[tuple[str, Any]]:
        """Ask the plugins one by one, since each has settings of its own; yield their names and answers."""
        plugins = self._plugins.get_plugins()
        for name, settings in self._settings_by_name.items():
            others = plugins - {self._plugins.get_plugin(name)}
            caller = self._plugins.subset_hook_caller(hook, others)
            try:
                answers = caller(settings=settings, **asked)
            except Exception as error:  # foreign code: whatever it raises, the operator must learn which
                raise broken(name, self._origins[name], error, f" for virtual host {self._vhost!r}") from error
            if len(answers) < len(caller.get_hookimpls()):
                raise self._fault(name, f"{hook} returned None")
            for answer in answers:
                if not isinstance(answer, shape):
                    raise self._fault(name, f"{hook} returned {answer!r}, which is not a {shape.__name__}")
                yield name, answer

    def _fault(self, name: str, reason: str) -> ConfigurationError:
        return ConfigurationError(f"plugin {name!r} ({self._origins[name]}) for virtual host {self._vhost!r}: {reason}")

    def _clash(self, kind: str, name: str, first: str, second: str) -> str:
        return (
            f"virtual host {self._vhost!r}: {kind} {name!r} is offered by two plugins, "
            f"{first!r} ({self._origins[first]}) and {second!r} ({self._origins[second]})"
        )


def _load_file(path: Path) -> object:
    """Import a single file under a name that no package has."""
    spec = spec_from_file_location(f"gateway_plugin_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError("no loader for this file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _entry_point_origin(point: EntryPoint) -> str:
    distribution = point.dist.name if point.dist is not None else "an unknown package"
    return f"{point.value} of {distribution}"
