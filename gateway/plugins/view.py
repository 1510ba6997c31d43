"""The plugins of one virtual host: calls each hook of each plugin with the plugin's settings."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from pluggy import PluginManager

from gateway import hookspecs
from gateway.access.verifying import PasswordVerifier
from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.faults import described, shown
from gateway.kernel.features.plugin_feature import QueueFeatureType
from gateway.kernel.interception.interceptor import Interceptor, problem_of_interceptor
from gateway.kernel.routing.exchange_type import ExchangeFactory
from gateway.kernel.vhosts.event_listeners import EventListener, ObservedVhost
from gateway.kernel.vhosts.metric_source import MetricSource
from gateway.plugins.faults import broken
from gateway.plugins.services.offering import VhostServices, offered_services

if TYPE_CHECKING:
    from gateway.access import AccessWrapper, AuthenticationMethod, Authenticator, Authorizer, PasswordCheck
    from gateway.kernel.broker.directory import Directory

T = TypeVar("T")

#: The hook whose objects wrap those of other plugins; they are created again after each change.
_WRAPPERS: Final = "gateway_access_wrappers"


class DuplicateOffer(ConfigurationError):
    """Two plugins of one virtual host offer an object of the same ``kind`` and name."""

    kind: ClassVar[str]


class DuplicateExchangeType(DuplicateOffer):
    """Two plugins of one virtual host offer an exchange type of the same name."""

    kind = "exchange type"


class DuplicateQueueSetting(DuplicateOffer):
    """Two plugins of one virtual host offer a queue feature with the same setting."""

    kind = "queue setting"


class DuplicateAuthenticationMethod(DuplicateOffer):
    """Two plugins of one virtual host offer an authentication method of the same name."""

    kind = "authentication method"


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin with the settings of one virtual host. ``number`` is that of its version; ``origin`` is its source."""

    plugin: object
    origin: str
    settings: object
    number: int = 1


class PluginView:
    """The plugins of one virtual host. Each method calls its hook again, so each is called once per view.

    ``inert`` maps unusable plugins to the reasons. If it is given, a plugin that fails is added to it and skipped;
    otherwise a failure raises. ``decides_access`` returns whether a plugin authenticates or authorizes. The objects
    that a ``former`` view got from plugins that did not change are used again, except those of the plugin ``renewed``.
    ``wrappable`` are the plugins whose access objects others may wrap.
    """

    def __init__(
        self,
        vhost: str,
        plugins: PluginManager,
        enabled: Mapping[str, EnabledPlugin],
        decides_access: Callable[[str], bool],
        inert: dict[str, str] | None = None,
        former: "PluginView | None" = None,
        wrappable: Collection[str] = (),
        renewed: str = "",
    ) -> None:
        self.inert: dict[str, str] = {} if inert is None else inert
        self.enabled = enabled
        self._is_lenient = inert is not None
        self._decides_access = decides_access
        self._vhost = vhost
        self._plugins = plugins
        self._former = former
        self._wrappable = wrappable
        self._renewed = renewed
        self._answers_by_hook: dict[tuple[str, str], list[Any]] = {}
        self._plugin_by_type: dict[str, str] = {}
        self._suppliers: list[tuple[object, str]] = []
        self.exchange_types: dict[str, ExchangeFactory] = self._merged_exchange_types()
        self.queue_features: tuple[QueueFeatureType, ...] = self._joined_queue_features()
        self.services = VhostServices()

    @property
    def names(self) -> list[str]:
        """The plugins in use, in the order of the calls."""
        return list(self.enabled)

    def is_changed(self, name: str) -> bool:
        """Return whether a plugin has another version or other settings than in the former view, or is renewed."""
        if self._former is None or name == self._renewed:
            return True
        return self._former.enabled.get(name) != self.enabled.get(name)

    def close(self, successor: "PluginView | None" = None) -> Iterator[tuple[object, BaseException]]:
        """Call ``close`` of the supplied objects that have one, except those that a successor uses too.

        Yield the objects that raise, with the exceptions.
        """
        kept = {id(part) for part, _ in successor._suppliers} if successor is not None else set()
        for part, _ in self._suppliers:
            close = getattr(part, "close", None)
            if id(part) in kept or not callable(close):
                continue
            try:
                close()
            except BaseException as error:  # plugin code
                yield part, error

    def forget_former(self) -> None:
        """Release the former view, whose objects are closed."""
        self._former = None

    @property
    def objection(self) -> str:
        """The reason why all access is refused: an access plugin cannot be used. Empty if all can."""
        guarding = [name for name in self.inert if self._decides_access(name)]
        return f"its plugin {guarding[0]!r} cannot be used: {self.inert[guarding[0]]}" if guarding else ""

    def plugin_of(self, part: object) -> str:
        """Return the plugin of an exchange type name or of a supplied object; ``""`` if none."""
        if isinstance(part, str):
            return self._plugin_by_type.get(part, "")
        return next((plugin for supplied, plugin in self._suppliers if supplied is part), "")

    def authenticators(
        self, directory: "Directory", passwords: "PasswordCheck | None" = None
    ) -> "tuple[Authenticator, ...]":
        """Return the authenticators; without ``passwords``, passwords are checked synchronously.

        :raises ConfigurationError: if a plugin fails.
        """
        check = PasswordVerifier() if passwords is None else passwords
        offered = self._joined(
            "gateway_authenticators", ["authenticate"], vhost=self._vhost, directory=directory, passwords=check
        )
        return self._wrapped("authenticator", "authenticate", offered)

    def authentication_methods(self, directory: "Directory") -> "dict[str, AuthenticationMethod]":
        """Return the authentication methods by name. :raises ConfigurationError: if a plugin fails or names clash."""
        hook = "gateway_authentication_methods"
        asked = {"vhost": self._vhost, "directory": directory}
        methods: dict[str, AuthenticationMethod] = {}
        for plugin, name, method in self._offers(hook, DuplicateAuthenticationMethod, **asked):
            if not _has(method, "begin"):
                reason = f"the authentication method {name!r} has no begin(): {method!r}"
                self._refuse(plugin, self._fault(plugin, reason))
                continue
            methods[name] = method
            self._suppliers.append((method, plugin))
        return methods

    def authorizers(
        self, directory: "Directory", permissions_changed: Callable[[], None] = lambda: None
    ) -> "tuple[Authorizer, ...]":
        """Return the authorizers. :raises ConfigurationError: if a plugin fails."""
        offered = self._joined(
            "gateway_authorizers",
            ["permissions"],
            vhost=self._vhost,
            directory=directory,
            permissions_changed=permissions_changed,
        )
        return self._wrapped("authorizer", "permissions", offered)

    def tracers(self, vhost: hookspecs.TracedVhost) -> tuple[Tracer, ...]:
        """Return the tracers. :raises ConfigurationError: if a plugin fails."""
        return self._joined("gateway_tracers", ["published", "delivered"], vhost=vhost)

    def interceptors(self, vhost: hookspecs.TracedVhost) -> tuple[Interceptor, ...]:
        """Return the interceptors. :raises ConfigurationError: if a plugin fails."""
        hook, methods = "gateway_interceptors", ["on_publish", "on_deliver"]
        return self._joined(hook, methods, problem_of_interceptor, vhost=vhost)

    def event_listeners(self, vhost: ObservedVhost) -> tuple[EventListener, ...]:
        """Return the event listeners. :raises ConfigurationError: if a plugin fails."""
        return self._joined("gateway_event_listeners", ["on_event"], vhost=vhost)

    def offer_services(self, vhost: hookspecs.TracedVhost) -> None:
        """Set ``services``, the HTTP resources and what uses them. :raises ConfigurationError: if a plugin fails."""
        self.services = offered_services(self._offered, self.inert, vhost)

    def metric_sources(self, vhost: hookspecs.TracedVhost) -> tuple[MetricSource, ...]:
        """Return the sources of metrics. :raises ConfigurationError: if a plugin fails."""
        return self._joined("gateway_metrics", ["metrics"], vhost=vhost.name)

    @cached_property
    def _wrappers(self) -> "tuple[AccessWrapper, ...]":
        methods = ["authenticator", "authorizer"]
        return self._joined(_WRAPPERS, methods, vhost=self._vhost, plugins=tuple(self._wrappable))

    def _wrapped(self, kind: str, method: str, offered: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return authenticators or authorizers with the wrappers before them; ``method`` is what each must have."""
        found = []
        for part in offered:
            owner, outer = self.plugin_of(part), part
            for wrapper in self._wrappers:
                outer = self._wrapped_by(wrapper, kind, method, owner, outer)
            if outer is not part:
                self._suppliers.append((outer, owner))
            found.append(outer)
        return tuple(found)

    def _wrapped_by(self, wrapper: "AccessWrapper", kind: str, method: str, owner: str, part: object) -> object:
        plugin = self.plugin_of(wrapper)
        try:
            outer: object = getattr(wrapper, kind)(owner, part)
        except BaseException as error:  # a plugin may raise anything; the error must name the plugin
            self._refuse(plugin, broken(plugin, self._origin(plugin), error, f" for virtual host {self._vhost!r}"))
            return part
        if not _has(outer, method):
            self._refuse(plugin, self._fault(plugin, f"{kind}() returned {shown(outer)}, which has no {method}()"))
            return part
        return outer

    def _merged_exchange_types(self) -> dict[str, ExchangeFactory]:
        factories: dict[str, ExchangeFactory] = {}
        for plugin, name, factory in self._offers("gateway_exchange_types", DuplicateExchangeType, vhost=self._vhost):
            if not callable(factory):
                reason = f"the factory of exchange type {name!r} cannot be called: {factory!r}"
                self._refuse(plugin, self._fault(plugin, reason))
                continue
            factories[name] = factory
            self._plugin_by_type[name] = plugin
        return factories

    def _joined_queue_features(self) -> tuple[QueueFeatureType, ...]:
        owners: dict[str, str] = {}
        joined: list[QueueFeatureType] = []
        for plugin, offered in self._answers("gateway_queue_features", Sequence, vhost=self._vhost):
            error = self._fault_of_features(plugin, offered, owners)
            if error is not None:
                self._refuse(plugin, error)
                continue
            owners |= {name: plugin for each in offered for name in each.settings}
            joined += offered
            self._suppliers += [(each, plugin) for each in offered]
        return tuple(joined)

    def _fault_of_features(
        self, plugin: str, offered: Sequence[object], owners: Mapping[str, str]
    ) -> ConfigurationError | None:
        """Return the fault in a plugin's queue features, or ``None``; ``owners`` has the settings of earlier ones."""
        seen = dict(owners)
        for each in offered:
            if not isinstance(each, QueueFeatureType):
                return self._fault(plugin, f"gateway_queue_features returned {shown(each)}, not a QueueFeatureType")
            for name in each.settings:
                if name in seen:
                    return DuplicateQueueSetting(self._clash("queue setting", name, seen[name], plugin))
                seen[name] = plugin
        return None

    def _offers(
        self, hook: str, duplicate: type[DuplicateOffer], **asked: object
    ) -> Iterator[tuple[str, str, Any]]:  # Any: the type depends on the hook
        """Yield plugin, name and object of each offer. :raises DuplicateOffer: for a duplicate name."""
        owners: dict[str, str] = {}
        for plugin, offered in self._answers(hook, Mapping, **asked):
            for name, item in offered.items():
                if name in owners:
                    self._refuse(plugin, duplicate(self._clash(duplicate.kind, name, owners[name], plugin)))
                    continue
                owners[name] = plugin
                yield plugin, name, item

    def _joined(
        self,
        hook: str,
        methods: Sequence[str],
        problem: Callable[[object], str | None] = lambda item: None,
        **asked: object,
    ) -> tuple[Any, ...]:  # Any: the type depends on the hook
        """Join the answers of all plugins; each object in them has these methods, and no ``problem``."""
        supplied: list[tuple[object, str]] = []
        for name, answer in self._answers(hook, Sequence, **asked):
            lacks = [(item, method) for item in answer for method in methods if not _has(item, method)]
            if lacks:
                item, method = lacks[0]
                self._refuse(name, self._fault(name, f"{hook} returned {shown(item)}, which has no {method}()"))
                continue
            if (wrong := next((text for item in answer if (text := problem(item)) is not None), None)) is not None:
                self._refuse(name, self._fault(name, f"{hook}: {wrong}"))
                continue
            supplied += [(item, name) for item in answer]
        self._suppliers += supplied
        return tuple(item for item, _ in supplied)

    def _offered(
        self, hook: str, kind: type[T], problem: Callable[[str, Sequence[T]], str | None], **asked: object
    ) -> list[tuple[str, T]]:
        """Return the objects of one class that the plugins offer, without those of plugins with a ``problem``."""
        found: list[tuple[str, T]] = []
        for name, answer in self._answers(hook, Sequence, **asked):
            wrong = next((item for item in answer if not isinstance(item, kind)), None)
            try:
                reason = problem(name, answer) if wrong is None else f"{shown(wrong)} is not a {kind.__name__}"
            except Exception as error:  # a field of a wrong type
                reason = f"{kind.__name__}: {described(error)}"
            if reason is not None:
                self._refuse(name, self._fault(name, f"{hook}: {reason}"))
                continue
            found += [(name, item) for item in answer]
        self._suppliers += [(item, name) for name, item in found]
        return found

    def _answers(self, hook: str, shape: type, **asked: object) -> Iterator[tuple[str, Any]]:
        """Call the hook of each plugin with its own settings; yield plugin names and results."""
        implementing = {id(each.plugin) for each in self._plugins.subset_hook_caller(hook, ()).get_hookimpls()}
        for name, plugin in self.enabled.items():
            if name in self.inert:
                continue
            try:
                answers = self._former_answers(name, hook)
                if answers is None and id(plugin.plugin) not in implementing:  # most plugins have one or two hooks
                    answers = []
                elif answers is None:
                    answers = self._asked(name, hook, shape, {"settings": plugin.settings, **asked})
                self._answers_by_hook[name, hook] = answers
            except ConfigurationError as error:
                self._refuse(name, error)
                continue
            for answer in answers:
                yield name, answer

    def _former_answers(self, name: str, hook: str) -> list[Any] | None:
        """Return the objects that an unchanged plugin supplied to the former view, which stay in use."""
        if self._former is None or hook == _WRAPPERS or self.is_changed(name):
            return None
        return self._former._answers_by_hook.get((name, hook))

    def _asked(self, name: str, hook: str, shape: type, asked: Mapping[str, object]) -> list[Any]:
        """Call the hook of one plugin. :raises ConfigurationError: if it fails or returns a wrong type."""
        others = self._plugins.get_plugins() - {self.enabled[name].plugin}
        caller = self._plugins.subset_hook_caller(hook, others)
        try:
            answers: list[Any] = caller(**asked)
        except BaseException as error:  # a plugin may raise anything; the error must name the plugin
            raise broken(name, self._origin(name), error, f" for virtual host {self._vhost!r}") from error
        if len(answers) < len(caller.get_hookimpls()):
            raise self._fault(name, f"{hook} returned None")
        for answer in answers:
            if not isinstance(answer, shape):
                raise self._fault(name, f"{hook} returned {answer!r}, which is not a {shape.__name__}")
        return answers

    def _refuse(self, name: str, error: ConfigurationError) -> None:
        """Skip a plugin in lenient mode, else raise its error."""
        if not self._is_lenient:
            raise error
        self.inert[name] = str(error)

    def _origin(self, name: str) -> str:
        return self.enabled[name].origin

    def _fault(self, name: str, reason: str) -> ConfigurationError:
        return ConfigurationError(f"plugin {name!r} ({self._origin(name)}) for virtual host {self._vhost!r}: {reason}")

    def _clash(self, kind: str, name: str, first: str, second: str) -> str:
        return (
            f"virtual host {self._vhost!r}: {kind} {name!r} is offered by two plugins, "
            f"{first!r} ({self._origin(first)}) and {second!r} ({self._origin(second)})"
        )


def _has(part: object, method: str) -> bool:
    return callable(getattr(part, method, None))
