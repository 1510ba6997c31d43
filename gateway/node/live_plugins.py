"""Plugins of running virtual hosts: enabled, disabled, replaced by another version, and rolled back."""

from collections.abc import Iterator, Mapping
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.plugin_swap import swapping_plugins
from gateway.kernel.errors import ConfigurationError, PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value
from gateway.kernel.plugin_times import CallTime
from gateway.kernel.vhosts.plugins import PluginParts
from gateway.node.vhost_access import VhostAccess
from gateway.plugins.enabling import DISABLED
from gateway.plugins.registry import ALWAYS_ON, PluginRegistry, PluginView
from gateway.plugins.view import EnabledPlugin

#: Event names by the change that they report.
ENABLED: Final = "plugin.enabled"
DISABLED_EVENT: Final = "plugin.disabled"
CHANGED: Final = "plugin.settings_changed"
RELOADED: Final = "plugin.reloaded"
ROLLED_BACK: Final = "plugin.rolled_back"
SWITCHED_OFF: Final = "plugin.switched_off"


class LivePlugins:
    """Changes the plugins of one virtual host at a time, without effect on its clients or on other virtual hosts.

    Each change is an iterator of steps. It takes effect at the end of the last one, as a whole; if a step raises, the
    virtual host keeps what it had. ``former_version`` has the version that a rollback returns to, by virtual host and
    plugin.
    """

    def __init__(self, access: VhostAccess, registry: PluginRegistry, broker: Broker) -> None:
        self._access = access
        self.registry = registry
        self.broker = broker
        self.former_version: dict[tuple[str, str], int] = {}

    def enabling(self, vhost: str, name: str, settings: Mapping[str, Value] | None = None) -> Iterator[None]:
        """Return the steps that enable a plugin, or change the settings of an enabled one.

        Without ``settings`` a plugin that the configuration enables gets those of the configuration. A plugin that was
        not enabled is loaded from its file as it is now.

        :raises ConfigurationError: if it is unknown, broken, or refuses the settings.
        :raises PreconditionFailed: if one of its exchange types refuses an exchange or a binding.
        """
        view = self._view(vhost)
        recorded = dict(self._recorded(vhost))
        versions = {}
        is_enabled = name in view.enabled
        if not is_enabled and (self.registry.is_file(name) or name not in self.registry.origins):
            versions[name] = self.registry.load_file_again(name).number
        if settings is not None:
            recorded[name] = dict(settings)
        elif recorded.get(name) is DISABLED and name in self._access.configured(vhost):
            del recorded[name]
        elif not is_enabled:
            recorded[name] = {}
        yield from self._changing(vhost, name, recorded, versions, CHANGED if is_enabled else ENABLED)

    def disabling(self, vhost: str, name: str, *, fault: str = "") -> Iterator[None]:
        """Return the steps that disable a plugin; exchanges of its types become inert and keep their bindings.

        ``fault`` is the reason of the broker to do so, empty for an operator.

        :raises PreconditionFailed: if it is always enabled, or not enabled.
        """
        if name in ALWAYS_ON:
            raise PreconditionFailed(f"plugin '{name}' is built in and always enabled")
        recorded = dict(self._recorded(vhost))
        configured = name in self._access.configured(vhost)
        if name not in self._view(vhost).enabled and (recorded.get(name, DISABLED) is DISABLED and not configured):
            raise PreconditionFailed(f"plugin '{name}' is not enabled in vhost '{vhost}'")
        recorded.pop(name, None)
        if configured:
            recorded[name] = DISABLED
        event = SWITCHED_OFF if fault else DISABLED_EVENT
        details = {"reason": fault} if fault else {}
        yield from self._changing(vhost, name, recorded, {}, event, details, may_become_inert=True)
        self.former_version.pop((vhost, name), None)

    def reloading(self, vhost: str, name: str) -> Iterator[None]:
        """Return the steps that replace a plugin by the version that is in its file now.

        Its objects are created again, also those of a plugin that is not a file or did not change, so that they read
        again what their settings refer to, such as the files of schemas.

        :raises ConfigurationError: if its new version is broken or refuses the settings.
        :raises PreconditionFailed: if it is not enabled, or the new version refuses an exchange or a binding.
        """
        former = self._enabled_version(vhost, name)
        version = self.registry.load_file_again(name).number if self.registry.is_file(name) else former
        yield from self._replacing(vhost, name, version, former, RELOADED, is_renewed=True)

    def rolling_back(self, vhost: str, name: str) -> Iterator[None]:
        """Return the steps that put the version before the last reload in use again.

        :raises PreconditionFailed: if the plugin is not enabled, or was not reloaded.
        """
        current = self._enabled_version(vhost, name)
        if (vhost, name) not in self.former_version:
            raise PreconditionFailed(f"plugin '{name}' has no former version in vhost '{vhost}': it was not reloaded")
        yield from self._replacing(vhost, name, self.former_version[vhost, name], current, ROLLED_BACK)

    def forget_deleted(self, event: Event) -> None:
        """Drop what belongs to a virtual host that is deleted; other events are ignored."""
        if event.name == "vhost.deleted":
            for key in [key for key in self.former_version if key[0] == event.vhost]:
                del self.former_version[key]

    def _replacing(
        self, vhost: str, name: str, version: int, former: int, event: str, *, is_renewed: bool = False
    ) -> Iterator[None]:
        """Return the steps that put one version of a plugin in the place of another."""
        details = {"version": version, "former_version": former}
        recorded = self._recorded(vhost)
        yield from self._changing(vhost, name, recorded, {name: version}, event, details, is_renewed=is_renewed)
        if version != former:
            self.former_version[vhost, name] = former
        self._forget_versions(name)

    def _changing(
        self,
        vhost_name: str,
        name: str,
        recorded: Mapping[str, Value],
        versions: Mapping[str, int],
        event: str,
        details: Mapping[str, object] | None = None,
        *,
        may_become_inert: bool = False,
        is_renewed: bool = False,
    ) -> Iterator[None]:
        """Return the steps of any change. Plugins that do not change keep their versions and their objects.

        There is no event if the plugin keeps its version and its settings.
        """
        vhost, access, broker = self.broker.vhost(vhost_name), self._access, self.broker
        former = self._view(vhost_name)
        numbers = {plugin: enabled.number for plugin, enabled in former.enabled.items()} | dict(versions)
        view, candidate = access.candidate(vhost_name, recorded, numbers, name if is_renewed else "")
        try:
            parts = PluginParts.of(view, broker.plugins_in_use.scope_of(vhost))
            _require_usable(view, former, name)
            yield from swapping_plugins(
                broker,
                vhost,
                view,
                parts,
                recorded,
                is_changed=lambda type_name: view.is_changed(view.plugin_of(type_name)),
                may_become_inert=may_become_inert,
            )
        except BaseException:
            access.close(vhost_name, view, former)
            raise
        is_effective = name not in view.enabled or view.is_changed(name)
        access.adopt(vhost_name, view, candidate)
        if is_effective:
            broker.events.emit(Event(event, vhost_name, name, details or {}))

    def enabled(self, vhost: str) -> Mapping[str, EnabledPlugin]:
        """Return the plugins in use in a virtual host, with their versions."""
        return self._view(vhost).enabled

    def times(self, vhost: str) -> Iterator[tuple[object, str, CallTime]]:
        """Yield the objects of plugins that were called in a virtual host, with the method and its times."""
        yield from self.broker.plugins_in_use.times(self.broker.vhost(vhost))
        for part, time in self._view(vhost).services.times:
            yield part, "answer", time
        if (calls := self._access.access_of(vhost).calls) is not None:
            yield from calls.times()

    def _forget_versions(self, name: str) -> None:
        """Unload versions of a plugin that no virtual host uses or can return to."""
        in_use = {number for (_, plugin), number in self.former_version.items() if plugin == name}
        for vhost in self.broker.vhost_by_name:
            if (enabled := self._view(vhost).enabled.get(name)) is not None:
                in_use.add(enabled.number)
        self.registry.forget_versions(name, in_use)

    def _enabled_version(self, vhost: str, name: str) -> int:
        enabled = self._view(vhost).enabled.get(name)
        if enabled is None:
            raise PreconditionFailed(f"plugin '{name}' is not enabled in vhost '{vhost}'")
        return enabled.number

    def _recorded(self, vhost: str) -> Mapping[str, Value]:
        return self.broker.vhost(vhost).record.plugins

    def _view(self, vhost: str) -> PluginView:
        self.broker.vhost(vhost)
        return self._access.view_in_use(vhost)


def _require_usable(view: PluginView, former: PluginView, name: str) -> None:
    """Require that no plugin fails that did not fail before. :raises ConfigurationError: with its reason."""
    failed = [plugin for plugin in view.inert if plugin == name or plugin not in former.inert]
    if failed:
        raise ConfigurationError(view.inert[name] if name in failed else view.inert[failed[0]])
