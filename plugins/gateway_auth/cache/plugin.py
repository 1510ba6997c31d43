"""auth-cache: keeps the answers of other plugins about logins and permissions for a time.

It stands before the plugins of its setting ``plugins``. All answers are dropped when a plugin of the virtual host is
enabled, disabled, replaced or gets new settings, and on demand.
"""

import time
from collections.abc import Collection, Sequence
from typing import Final

from gateway.api import AccessWrapper, Authenticator, Authorizer, ConfigurationError, PluginSettings, hookimpl
from gateway_auth.cache.logins import CachedAuthenticator
from gateway_auth.cache.permissions import CachedAuthorizer
from gateway_auth.cache.settings import CacheSettings

NAME: Final = "auth-cache"


class AccessCache:
    """Puts caches before the plugins of its settings."""

    def __init__(self, settings: CacheSettings) -> None:
        self._settings = settings

    def authenticator(self, plugin: str, asked: Authenticator) -> Authenticator:
        """Return a cache of logins."""
        settings = self._settings
        return CachedAuthenticator(asked, settings, time.monotonic, time.time) if self._keeps(plugin) else asked

    def authorizer(self, plugin: str, asked: Authorizer) -> Authorizer:
        """Return a cache of permissions."""
        return CachedAuthorizer(asked, self._settings, time.monotonic) if self._keeps(plugin) else asked

    def _keeps(self, plugin: str) -> bool:
        return plugin in self._settings.plugins


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the settings."""
    return CacheSettings


@hookimpl
def gateway_access_wrappers(plugins: Collection[str], settings: CacheSettings) -> Sequence[AccessWrapper]:
    """Offer the caches. :raises ConfigurationError: if the settings name a plugin that is not enabled."""
    others = sorted(set(plugins) - {NAME})
    for name in settings.plugins:
        if name not in others:
            raise ConfigurationError(
                f"plugins: {name!r} is not an access plugin that this virtual host enables by name; "
                f"there {'are' if len(others) > 1 else 'is'} {', '.join(others) or 'none'}"
            )
    return [AccessCache(settings)]
