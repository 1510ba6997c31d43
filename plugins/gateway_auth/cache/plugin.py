"""auth-cache: keeps the answers of other plugins about logins and permissions for a time.

It stands before the plugins of its setting ``plugins``. All answers are dropped when a plugin of the virtual host is
enabled, disabled, replaced or gets new settings, and on demand.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from gateway.api import (
    AccessWrapper,
    Authenticator,
    Authorizer,
    ConfigurationError,
    CtlVerb,
    HttpRequest,
    HttpResource,
    MetricSource,
    PanelColumn,
    PluginMetric,
    PluginSettings,
    TracedVhost,
    UiPanel,
    hookimpl,
)
from gateway_auth.cache.answers import AnswerCounts
from gateway_auth.cache.logins import CachedAuthenticator
from gateway_auth.cache.permissions import CachedAuthorizer
from gateway_auth.cache.settings import CacheSettings

NAME: Final = "auth-cache"

_COLUMNS: Final = ("plugin", "kind", "kept", "hits", "misses")


#: The caches of each virtual host that are not closed. While plugins change there are two; the last one is in use
#: once the other is closed.
_caches: Final[dict[str, list["AccessCache"]]] = {}


class AccessCache:
    """Puts caches before the plugins of its settings in one virtual host."""

    def __init__(self, vhost: str, settings: CacheSettings) -> None:
        self._vhost = vhost
        self._settings = settings
        self._parts: list[tuple[str, CachedAuthenticator | CachedAuthorizer]] = []
        _caches.setdefault(vhost, []).append(self)

    def close(self) -> None:
        """Forget this cache, which is not used any more."""
        caches = _caches.get(self._vhost, [])
        if self in caches:
            caches.remove(self)
        if not caches:
            _caches.pop(self._vhost, None)

    def counts(self) -> Iterator[tuple[str, str, AnswerCounts]]:
        """Yield plugin, kind of the answers and their numbers."""
        for plugin, part in self._parts:
            yield plugin, "logins" if isinstance(part, CachedAuthenticator) else "permissions", part.counts

    def authenticator(self, plugin: str, asked: Authenticator) -> Authenticator:
        """Return a cache of logins."""
        if plugin not in self._settings.plugins:
            return asked
        cached = CachedAuthenticator(asked, self._settings, time.monotonic, time.time)
        self._parts.append((plugin, cached))
        return cached

    def authorizer(self, plugin: str, asked: Authorizer) -> Authorizer:
        """Return a cache of permissions."""
        if plugin not in self._settings.plugins:
            return asked
        cached = CachedAuthorizer(asked, self._settings, time.monotonic)
        self._parts.append((plugin, cached))
        return cached


class CacheReport(MetricSource):
    """The numbers of kept answers in one virtual host, for operators."""

    def __init__(self, vhost: str) -> None:
        self._vhost = vhost

    def rows(self, request: HttpRequest) -> Iterator[dict[str, Any]]:
        """Yield plugin, kind and numbers of its kept answers."""
        for plugin, kind, found in self._counts():
            yield {"plugin": plugin, "kind": kind, "kept": found.kept, "hits": found.hits, "misses": found.misses}

    def metrics(self) -> Sequence[PluginMetric]:
        """Return the numbers of kept, of found and of missing answers."""
        counts = [({"plugin": plugin, "kind": kind}, found) for plugin, kind, found in self._counts()]
        hits, misses = "Answers that were found", "Answers that were not found, so that the plugin was asked"
        return [
            PluginMetric("kept", "gauge", "Kept answers", [(labels, found.kept) for labels, found in counts]),
            PluginMetric("hits_total", "counter", hits, [(labels, found.hits) for labels, found in counts]),
            PluginMetric("misses_total", "counter", misses, [(labels, found.misses) for labels, found in counts]),
        ]

    def _counts(self) -> list[tuple[str, str, AnswerCounts]]:
        """Return the sums by plugin and kind: a plugin may have several authenticators."""
        caches, sums = _caches.get(self._vhost, ()), dict[tuple[str, str], AnswerCounts]()
        for plugin, kind, found in caches[-1].counts() if caches else ():
            before = sums.get((plugin, kind), AnswerCounts(0, 0, 0))
            sums[plugin, kind] = AnswerCounts(
                before.kept + found.kept, before.hits + found.hits, before.misses + found.misses
            )
        return [(*key, found) for key, found in sums.items()]


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the settings."""
    return CacheSettings


@hookimpl
def gateway_access_wrappers(vhost: str, plugins: Collection[str], settings: CacheSettings) -> Sequence[AccessWrapper]:
    """Offer the caches. :raises ConfigurationError: if the settings name a plugin that is not enabled."""
    others = sorted(set(plugins) - {NAME})
    for name in settings.plugins:
        if name not in others:
            raise ConfigurationError(
                f"plugins: {name!r} is not an access plugin that this virtual host enables by name; "
                f"there {'are' if len(others) > 1 else 'is'} {', '.join(others) or 'none'}"
            )
    return [AccessCache(vhost, settings)]


@hookimpl
def gateway_metrics(vhost: str) -> Sequence[MetricSource]:
    """Offer the numbers of kept answers."""
    return [CacheReport(vhost)]


@hookimpl
def gateway_http_resources(vhost: TracedVhost) -> Sequence[HttpResource]:
    """Offer the numbers of kept answers."""
    rows = CacheReport(vhost.name).rows
    return [HttpResource("answers", rows, tag="administrator", description="The numbers of kept answers.")]


@hookimpl
def gateway_ctl_verbs() -> Sequence[CtlVerb]:
    """Offer the numbers to gatewayctl."""
    return [CtlVerb("list", "answers", "List the numbers of kept answers by plugin.", columns=_COLUMNS)]


@hookimpl
def gateway_ui_panels() -> Sequence[UiPanel]:
    """Offer the numbers as a table."""
    columns = [PanelColumn(name, name.capitalize()) for name in _COLUMNS]
    return [UiPanel("Kept answers about access", "answers", page="admin", columns=columns)]
