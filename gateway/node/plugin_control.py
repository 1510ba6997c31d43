"""Plugins as the management API shows and changes them."""

import re
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Final

from gateway.kernel.errors import ConfigurationError, PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value
from gateway.logs import StructuredLog
from gateway.node.live_plugins import LivePlugins
from gateway.node.plugin_faults import PluginFaults
from gateway.node.vhost_access import VhostAccess
from gateway.plugins.files import is_test, write_plugin
from gateway.plugins.registry import ALWAYS_ON
from gateway.plugins.services.http_resource import HttpResource
from gateway.plugins.settings import described_settings, secret_settings

_log: Final = StructuredLog("node")

_FILE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")

#: Shown in the place of a secret setting.
_HIDDEN: Final = "********"


class NodePlugins:
    """The plugins of one node, for the management API."""

    def __init__(self, live: LivePlugins, access: VhostAccess, faults: PluginFaults) -> None:
        self._live = live
        self._registry = live.registry
        self._access = access
        self._faults = faults

    def available(self) -> Iterator[dict[str, object]]:
        """Yield a row for each plugin of this process, by name."""
        registry = self._registry
        for name in sorted({**registry.origins, **registry.broken}):
            if name in registry.origins:
                yield self._described(name)
            if name in registry.broken:
                yield {"name": name, "broken": registry.broken[name]}

    def in_vhost(self, vhost: str) -> Iterator[dict[str, object]]:
        """Yield a row for each plugin, with its state in a virtual host."""
        view = self._access.view_in_use(vhost)
        for name in sorted({**self._registry.origins, **self._registry.broken, **view.inert}):
            yield self._row(vhost, name)

    def enabling(self, vhost: str, name: str, settings: Mapping[str, Value] | None) -> Generator[None, None, None]:
        """Return the steps that enable a plugin, or change its settings."""
        yield from self._live.enabling(vhost, name, settings)

    def disabling(self, vhost: str, name: str) -> Generator[None, None, None]:
        """Return the steps that disable a plugin."""
        yield from self._live.disabling(vhost, name)

    def reloading(self, vhost: str, name: str) -> Generator[None, None, None]:
        """Return the steps that put the version of the file in use."""
        yield from self._live.reloading(vhost, name)

    def rolling_back(self, vhost: str, name: str) -> Generator[None, None, None]:
        """Return the steps that put the version before the last reload in use."""
        yield from self._live.rolling_back(vhost, name)

    def upload(self, name: str, source: bytes, user: str) -> bool:
        """Write a plugin file; return whether it existed. Log who wrote it; nothing is executed.

        :raises PreconditionFailed: if the settings forbid it, or the name is not that of a file.
        :raises ConfigurationError: if it is not Python, or the directory is not safe.
        """
        settings, registry = self._access.settings, self._registry
        if not settings.plugins.allow_upload or settings.plugins_dir is None:
            lacks = "plugins.allow_upload is false" if settings.plugins_dir is not None else "plugins_dir is not set"
            raise PreconditionFailed(f"plugin files cannot be uploaded: {lacks}")
        if not _FILE_NAME.fullmatch(name) or is_test(Path(f"{name}.py")):
            raise PreconditionFailed(f"{name!r} cannot be the name of a plugin file: use letters, digits, - and _")
        if name in registry.origins and not registry.is_file(name):
            raise PreconditionFailed(f"plugin {name!r} is not a file: {registry.origins[name]}")
        existed, digest = write_plugin(settings.plugins_dir / f"{name}.py", source)
        _log.warning("plugin file uploaded", plugin=name, user=user, bytes=len(source), sha256=digest)
        details = {"user": user, "sha256": digest}
        self._live.broker.events.emit(Event("plugin.uploaded", "", name, details))
        return existed

    def _described(self, name: str) -> dict[str, object]:
        registry = self._registry
        row: dict[str, object] = {
            "name": name,
            "source": registry.origins[name],
            "description": registry.description(name),
            "hooks": registry.hooks(name),
            "always_enabled": name in ALWAYS_ON,
            "is_file": registry.is_file(name),
            "takes_settings": registry.takes_settings(name),
            "vhosts": [vhost for vhost in self._live.broker.vhost_by_name if name in self._live.enabled(vhost)],
        }
        try:
            model = registry.settings_model(name)
        except ConfigurationError as error:
            return row | {"broken": str(error)}
        return row | {"settings": described_settings(model) if model is not None else []}

    def _row(self, vhost: str, name: str) -> dict[str, object]:
        view, recorded = self._access.view_in_use(vhost), self._live.broker.vhost(vhost).record.plugins
        configured = self._access.configured(vhost)
        enabled = view.enabled.get(name)
        row: dict[str, object] = {"name": name, "vhost": vhost, "state": "disabled"}
        if reason := view.inert.get(name) or ("" if name in self._registry.origins else self._registry.broken[name]):
            row |= {"state": "inert" if name in view.inert else "broken", "reason": reason}
        elif enabled is not None:
            row["state"] = "enabled"
        if name in recorded:
            row["set_by"] = "virtual host"
        elif name in configured:
            row["set_by"] = "configuration"
        elif name in ALWAYS_ON:
            row["set_by"] = "always enabled"
        if enabled is not None:
            row["version"] = enabled.number
            row["settings"] = self._shown_settings(name, enabled.number, recorded.get(name, configured.get(name, {})))
            row["exchange_types"] = [type for type in view.exchange_types if view.plugin_of(type) == name]
            offered = [each for each in view.queue_features if view.plugin_of(each) == name]
            row["queue_settings"] = [setting for each in offered for setting in each.settings]
        if (former := self._live.former_version.get((vhost, name))) is not None:
            row["former_version"] = former
        row["times"] = list(self._times(vhost, name))
        row["faults"] = self._faults.count.get((vhost, name), 0)
        return row

    def _times(self, vhost: str, name: str) -> Iterator[dict[str, object]]:
        """Yield the times of the measured calls of a plugin in a virtual host, by method."""
        in_use = self._live.broker.plugins_in_use
        for part, method, time in self._live.times(vhost):
            if time.calls and in_use.plugin_of(vhost, part) == name:
                yield {
                    "part": _shown_part(part),
                    "method": method,
                    "measured_calls": time.calls,
                    "mean_us": round(time.total_s / time.calls * 1e6, 1),
                    "longest_us": round(time.longest_s * 1e6, 1),
                }

    def _shown_settings(self, name: str, number: int, settings: object) -> object:
        """Return the settings as given, without secrets."""
        model = self._registry.settings_model(name, number)
        if model is None or not isinstance(settings, Mapping):
            return settings
        secrets = secret_settings(model)
        return {key: _HIDDEN if key in secrets else value for key, value in settings.items()}


def _shown_part(part: object) -> str:
    """Return the name of a component of a plugin."""
    if isinstance(part, HttpResource):
        return f"{part.method} {part.path}"
    return part if isinstance(part, str) else type(part).__qualname__
