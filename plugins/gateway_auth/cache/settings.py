"""The settings of ``auth-cache``."""

from typing import Annotated

from pydantic import Field

from gateway.api import PluginSettings


class CacheSettings(PluginSettings):
    """The settings of the cache; RabbitMQ's are ``cached_backend``, ``cache_ttl`` and ``cache_refusals``."""

    plugins: Annotated[list[str], Field(min_length=1)]
    """The plugins of this virtual host whose answers are kept, such as ``auth-http``."""

    ttl_s: float = Field(default=15.0, ge=0, le=86_400)
    """A successful login, and a permission, is not asked for again within this time."""

    refusal_ttl_s: float = Field(default=0.0, ge=0, le=86_400)
    """The same for refusals; 0 does not keep them."""

    max_entries: int = Field(default=10_000, ge=1, le=1_000_000)
    """The most logins, and the most permissions, that are kept for each plugin; the oldest are dropped."""
