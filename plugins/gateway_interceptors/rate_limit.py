"""interceptor-rate-limit: limits how many messages a user, a client or a whole virtual host publishes a second."""

import time
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from gateway.api import (
    Decision,
    Interceptor,
    Message,
    Origin,
    PluginSettings,
    Refusal,
    RefusalCause,
    hookimpl,
)
from gateway_interceptors.token_buckets import TokenBuckets


class RateLimitSettings(PluginSettings):
    """The settings of ``interceptor-rate-limit``."""

    per: Literal["user", "client", "vhost"] = "user"
    """What shares one limit: the messages of a user, of a client (an MQTT client id, or a connection), or all."""

    messages_per_s: float = Field(gt=0, le=1_000_000)
    """Messages a second in the long run."""

    burst: int = Field(default=100, ge=1, le=1_000_000)
    """Messages that may come at once after a pause."""


class PublishRateLimit(Interceptor):
    """Refuses messages beyond the limit, and tells the publisher when to try again."""

    def __init__(self, settings: RateLimitSettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per = settings.per
        self._messages_per_s = settings.messages_per_s
        self._buckets = TokenBuckets(settings.messages_per_s, settings.burst, now_s)

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message, or a refusal with ``RefusalCause.LIMIT``."""
        key = self._key(origin)
        wait_s = self._buckets.take(key)
        if not wait_s:
            return message
        whom = f"{self._per} '{key[:60]}'" if key else "the virtual host"
        limit = f"{self._messages_per_s:g} messages a second for {whom}"
        return Refusal(f"rate limit exceeded: {limit}; try again in {wait_s:.3g} s", RefusalCause.LIMIT)

    def _key(self, origin: Origin) -> str:
        if self._per == "vhost":
            return ""
        if self._per == "user":
            return origin.user
        return origin.client_id or origin.connection or origin.user


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the limit."""
    return RateLimitSettings


@hookimpl
def gateway_interceptors(settings: RateLimitSettings) -> Sequence[Interceptor]:
    """Offer the interceptor."""
    return [PublishRateLimit(settings)]
