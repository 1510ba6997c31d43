"""interceptor-rate-limit: limits how many messages a user, a client or a whole virtual host publishes a second.

Operators see who is limited, as a resource, a verb, a panel and metrics, and can lift a limit for one burst.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from pydantic import Field

from gateway.api import (
    CtlVerb,
    Decision,
    HttpRequest,
    HttpResource,
    Interceptor,
    Message,
    MetricSource,
    Origin,
    PanelColumn,
    PluginMetric,
    PluginSettings,
    Refusal,
    RefusalCause,
    TracedVhost,
    UiPanel,
    VerbArgument,
    hookimpl,
)
from gateway_interceptors.token_buckets import TokenBuckets

#: The limit of each virtual host, for the hooks that are called after that of interceptors.
_limits: Final[WeakValueDictionary[str, "PublishRateLimit"]] = WeakValueDictionary()


class RateLimitSettings(PluginSettings):
    """The settings of ``interceptor-rate-limit``."""

    per: Literal["user", "client", "vhost"] = "user"
    """What shares one limit: the messages of a user, of a client (an MQTT client id, or a connection), or all."""

    messages_per_s: float = Field(gt=0, le=1_000_000)
    """Messages a second in the long run."""

    burst: int = Field(default=100, ge=1, le=1_000_000)
    """Messages that may come at once after a pause."""


class PublishRateLimit(Interceptor, MetricSource):
    """Refuses messages beyond the limit; the refusal has the time after which to try again."""

    def __init__(self, settings: RateLimitSettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per = settings.per
        self._messages_per_s = settings.messages_per_s
        self._refused = 0
        self._buckets = TokenBuckets(settings.messages_per_s, settings.burst, now_s)

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message, or a refusal with ``RefusalCause.LIMIT``."""
        key = self._key(origin)
        wait_s = self._buckets.take(key)
        if not wait_s:
            return message
        self._refused += 1
        whom = f"{self._per} '{key[:60]}'" if key else "the virtual host"
        limit = f"{self._messages_per_s:g} messages a second for {whom}"
        return Refusal(f"rate limit exceeded: {limit}; try again in {wait_s:.3g} s", RefusalCause.LIMIT)

    def metrics(self) -> Sequence[PluginMetric]:
        """Return the number of refused messages, and of buckets that are not full."""
        return [
            PluginMetric("refused_total", "counter", "Messages beyond the limit", [({}, self._refused)]),
            PluginMetric("buckets", "gauge", "Publishers that sent lately: their buckets", [({}, len(self._buckets))]),
        ]

    def rows(self, request: HttpRequest) -> Iterator[dict[str, Any]]:
        """Return whose buckets are not full; ``refused`` counts messages since the bucket was full."""
        for state in self._buckets.states():
            yield {"per": self._per, "name": state.key, "tokens": round(state.tokens, 3), "refused": state.missed}

    def lift(self, request: HttpRequest) -> None:
        """Fill the bucket that the field ``name`` of the query names; empty for that of the virtual host."""
        self._buckets.fill(request.query.get("name", ""))

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
def gateway_interceptors(vhost: TracedVhost, settings: RateLimitSettings) -> Sequence[Interceptor]:
    """Offer the interceptor."""
    limit = _limits[vhost.name] = PublishRateLimit(settings)
    return [limit]


@hookimpl
def gateway_metrics(vhost: str) -> Sequence[MetricSource]:
    """Offer the number of refused messages."""
    return [_limits[vhost]]


@hookimpl
def gateway_http_resources(vhost: TracedVhost) -> Sequence[HttpResource]:
    """Offer the buckets of publishers."""
    limit = _limits[vhost.name]
    return [
        HttpResource("publishers", limit.rows, tag="monitoring", description="Publishers whose bucket is not full."),
        HttpResource("publishers", limit.lift, "DELETE", tag="administrator", description="Fill a bucket."),
    ]


@hookimpl
def gateway_ctl_verbs() -> Sequence[CtlVerb]:
    """Offer the buckets to gatewayctl."""
    name = VerbArgument("name", "User, client or connection; none for the limit of the vhost.", is_required=False)
    columns = ["per", "name", "tokens", "refused"]
    return [
        CtlVerb("list", "publishers", "List the publishers whose bucket is not full.", columns=columns),
        CtlVerb("lift", "publishers", "Let a publisher send a full burst again.", "DELETE", arguments=[name]),
    ]


@hookimpl
def gateway_ui_panels() -> Sequence[UiPanel]:
    """Offer a table of the buckets."""
    columns = [PanelColumn("name", "Publisher"), PanelColumn("tokens", "Tokens"), PanelColumn("refused", "Refused")]
    return [UiPanel("Rate limits", "publishers", page="connections", columns=columns)]
