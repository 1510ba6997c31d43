"""The plugins of each virtual host, and the access checks that they supply."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from gateway.access import Access, AccessCalls, LoginThrottle, PasswordVerifier
from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value
from gateway.logs import StructuredLog
from gateway.plugins.enabling import enabled_plugins
from gateway.plugins.registry import PluginRegistry, PluginView

_log: Final = StructuredLog("node")


class VhostAccess:
    """Owns the plugin view and the ``Access`` of each virtual host.

    ``is_lenient`` holds while the broker starts: a plugin that fails is inert then, and does not stop the start.
    ``broker`` and ``throttle`` are set once they exist, before the first virtual host does.
    """

    broker: Broker
    throttle: LoginThrottle

    def __init__(self, settings: Settings, registry: PluginRegistry, passwords: PasswordVerifier) -> None:
        self.settings = settings
        self.is_lenient = True
        self._registry = registry
        self._passwords = passwords
        self._view_by_vhost: dict[str, PluginView] = {}
        self._access_by_vhost: dict[str, Access] = {}
        #: Returns the access checks of a virtual host. The look-up itself, because each login asks four times.
        self.access_of: Callable[[str], Access] = self._access_by_vhost.__getitem__

    def view(self, vhost: str, recorded: Mapping[str, Value]) -> PluginView:
        """Return what a virtual host's plugins supply: those of the configuration, changed by those of its record."""
        plugins = enabled_plugins(self.configured(vhost), recorded)
        view = self._registry.view(vhost, plugins, is_lenient=self.is_lenient)
        self._view_by_vhost[vhost] = view
        self._access_by_vhost[vhost] = self._access(view, vhost)
        return view

    def configured(self, vhost: str) -> Mapping[str, Value]:
        """Return the plugins that the configuration enables in a virtual host, with their settings."""
        configured = self.settings.vhosts.get(vhost)
        return configured.plugins if configured is not None else {}

    def view_in_use(self, vhost: str) -> PluginView:
        """Return the plugins of an existing virtual host."""
        return self._view_by_vhost[vhost]

    def candidate(
        self, vhost: str, recorded: Mapping[str, Value], versions: Mapping[str, int], renewed: str = ""
    ) -> tuple[PluginView, Access]:
        """Return what the plugins would supply with another record and these versions; plugins that fail are inert.

        The objects of the plugin ``renewed`` are created again in any case.
        """
        plugins = enabled_plugins(self.configured(vhost), recorded)
        former = self._view_by_vhost[vhost]
        view = self._registry.view(vhost, plugins, is_lenient=True, versions=versions, former=former, renewed=renewed)
        return view, self._access(view, vhost)

    def adopt(self, vhost: str, view: PluginView, access: Access) -> None:
        """Put a candidate in use, for logins and permissions from now on; close the former objects."""
        former, self._view_by_vhost[vhost] = self._view_by_vhost[vhost], view
        self._access_by_vhost[vhost].adopt(access)
        view.forget_former()
        self.close(vhost, former, view)

    def close(self, vhost: str, view: PluginView, successor: PluginView | None = None) -> None:
        """Close the objects of a view that the successor does not use."""
        for part, error in view.close(successor):
            self.broker.faults.contain_in_part("close", error, vhost, part)

    def close_all(self) -> None:
        """Close the objects of all plugins: the broker stops."""
        for vhost, view in self._view_by_vhost.items():
            self.close(vhost, view)

    def login_access(self) -> Access:
        """Return the access checks of a login before its virtual host is known: the default virtual host's."""
        name = self.settings.default_vhost
        if name in self._view_by_vhost:
            return self.access_of(name)
        return self._access(self._registry.view("", {}), "")

    def may_log_in_elsewhere(self) -> bool:
        """Whether another virtual host's plugins might accept a user whom the default one's refuse."""
        default = self.settings.default_vhost
        return any(name != default and self._enables_plugins(name) for name in self._view_by_vhost)

    def inert_plugins(self, vhost: str) -> Mapping[str, str]:
        """Return the plugins of a virtual host that failed at the start, and why."""
        view = self._view_by_vhost.get(vhost)
        return {} if view is None else view.inert

    def log_inert_plugins(self) -> None:
        """Log the plugins that failed, and the virtual hosts that refuse all logins because of them."""
        for name, reason in self._registry.broken.items():
            _log.error("plugin not loaded", plugin=name, reason=reason)
        for vhost, view in self._view_by_vhost.items():
            for name, reason in view.inert.items():
                _log.error("plugin inert", vhost=vhost, plugin=name, reason=reason)
            if view.objection:
                _log.error("virtual host refuses all logins", vhost=vhost, reason=view.objection)

    def forget_deleted(self, event: Event) -> None:
        """Drop what belongs to a virtual host that is deleted; other events are ignored."""
        if event.name == "vhost.deleted":
            view = self._view_by_vhost.pop(event.vhost, None)
            if view is not None:
                self.close(event.vhost, view)
            self._access_by_vhost.pop(event.vhost, None)

    def _access(self, view: PluginView, vhost: str) -> Access:
        directory, changed = self.broker.directory, partial(self._permissions_changed, vhost)

        def failed(kind: str, part: object, error: BaseException) -> None:
            self.broker.faults.contain_in_part(kind, error, vhost, part)

        authenticators = view.authenticators(directory, self._passwords)
        authorizers = view.authorizers(directory, changed)
        slow_calls = self.broker.plugins_in_use.slow_calls
        return Access(
            authenticators,
            authorizers,
            frozenset(self.settings.loopback_users),
            view.authentication_methods(directory),
            failed,
            closed=view.objection,
            throttle=self.throttle,
            trusts_loopback=self.settings.login.trust_loopback,
            plugin_of=view.plugin_of,
            calls=AccessCalls(slow_calls, vhost, authenticators, authorizers),
        )

    def _permissions_changed(self, vhost: str) -> None:
        """Drop kept permissions, and let connections read theirs again: a plugin has reported changes."""
        if (access := self._access_by_vhost.get(vhost)) is not None:
            access.permissions_changed()
        self.broker.permissions_changed(vhost)

    def _enables_plugins(self, name: str) -> bool:
        configured, vhost = self.settings.vhosts.get(name), self.broker.vhost_by_name.get(name)
        recorded = vhost is not None and vhost.record.plugins  # no such vhost: definitions are being checked for it
        return bool(recorded or (configured is not None and configured.plugins))
