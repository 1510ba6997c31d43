"""What the plugins of one virtual host supply: each hook is asked of each plugin, with its own settings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pluggy import PluginManager

from gateway import hookspecs
from gateway.access.verifying import PasswordVerifier
from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.messages.message import Value
from gateway.kernel.routing.exchange_type import ExchangeFactory
from gateway.plugins.faults import broken

if TYPE_CHECKING:
    from gateway.access import AuthenticationMethod, Authenticator, Authorizer, PasswordCheck
    from gateway.kernel.broker.directory import Directory


class DuplicateOffer(ConfigurationError):
    """Two plugins of one virtual host offer a thing of the same ``kind`` and name."""

    kind: ClassVar[str]


class DuplicateExchangeType(DuplicateOffer):
    """Two plugins of one virtual host offer an exchange type of the same name."""

    kind = "exchange type"


class DuplicateAuthenticationMethod(DuplicateOffer):
    """Two plugins of one virtual host offer an authentication method of the same name."""

    kind = "authentication method"


class PluginView:
    """The plugins of one virtual host. Each method asks its hook anew, so each is called once per start.

    With ``inert``, which holds plugins that cannot be used and why, a plugin that fails is added to them, and
    everything goes on without it. Without, it is an error. ``decides_access`` tells whether a plugin authenticates or
    authorizes.
    """

    def __init__(
        self,
        vhost: str,
        plugins: PluginManager,
        origins: Mapping[str, str],
        settings_by_name: Mapping[str, Mapping[str, Value]],
        decides_access: Callable[[str], bool],
        inert: dict[str, str] | None = None,
    ) -> None:
        self.inert: dict[str, str] = {} if inert is None else inert
        self._is_lenient = inert is not None
        self._decides_access = decides_access
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

    @property
    def objection(self) -> str:
        """Why nobody is let in: a plugin that may have a say in it cannot be used. Empty when all of them can."""
        guarding = [name for name in self.inert if self._decides_access(name)]
        return f"its plugin {guarding[0]!r} cannot be used: {self.inert[guarding[0]]}" if guarding else ""

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
                reason = f"the authentication method {name!r} has no begin(): {method!r}"
                self._refuse(plugin, self._fault(plugin, reason))
                continue
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
                reason = f"the factory of exchange type {name!r} cannot be called: {factory!r}"
                self._refuse(plugin, self._fault(plugin, reason))
                continue
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
                    self._refuse(plugin, duplicate(self._clash(duplicate.kind, name, owners[name], plugin)))
                    continue
                owners[name] = plugin
                yield plugin, name, item

    def _joined(self, hook: str, **asked: object) -> tuple[Any, ...]:  # Any: the specification of the hook says which
        supplied = [(item, name) for name, answer in self._answers(hook, Sequence, **asked) for item in answer]
        self._suppliers += supplied
        return tuple(item for item, _ in supplied)

    def _answers(self, hook: str, shape: type, **asked: object) -> Iterator[tuple[str, Any]]:
        """Ask the plugins one by one, since each has settings of its own; yield their names and answers."""
        for name, settings in self._settings_by_name.items():
            if name in self.inert:
                continue
            try:
                answers = self._asked(name, hook, shape, {"settings": settings, **asked})
            except ConfigurationError as error:
                self._refuse(name, error)
                continue
            for answer in answers:
                yield name, answer

    def _asked(self, name: str, hook: str, shape: type, asked: Mapping[str, object]) -> list[Any]:
        """Ask one plugin. :raises ConfigurationError: when it fails, or its answer is not what the hook specifies."""
        others = self._plugins.get_plugins() - {self._plugins.get_plugin(name)}
        caller = self._plugins.subset_hook_caller(hook, others)
        try:
            answers: list[Any] = caller(**asked)
        except BaseException as error:  # foreign code: whatever it raises, the operator must learn which
            raise broken(name, self._origins[name], error, f" for virtual host {self._vhost!r}") from error
        if len(answers) < len(caller.get_hookimpls()):
            raise self._fault(name, f"{hook} returned None")
        for answer in answers:
            if not isinstance(answer, shape):
                raise self._fault(name, f"{hook} returned {answer!r}, which is not a {shape.__name__}")
        return answers

    def _refuse(self, name: str, error: ConfigurationError) -> None:
        """Go on without a plugin if that is wanted, else raise what is wrong with it."""
        if not self._is_lenient:
            raise error
        self.inert[name] = str(error)

    def _fault(self, name: str, reason: str) -> ConfigurationError:
        return ConfigurationError(f"plugin {name!r} ({self._origins[name]}) for virtual host {self._vhost!r}: {reason}")

    def _clash(self, kind: str, name: str, first: str, second: str) -> str:
        return (
            f"virtual host {self._vhost!r}: {kind} {name!r} is offered by two plugins, "
            f"{first!r} ({self._origins[first]}) and {second!r} ({self._origins[second]})"
        )
