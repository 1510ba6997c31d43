"""auth-http: logins and permissions decided by an HTTP server, in the format of RabbitMQ's HTTP backend.

Permissions are asked for when a connection first needs them, and kept for ``cache_ttl_s``. A request that needs one
waits for it, and with it the later input of its connection; no other connection waits.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gateway.api import Authenticator, Authorizer, PluginSettings, hookimpl
from gateway_auth.asked.authorizer import AskedAuthorizer
from gateway_auth.asked.verdicts import Verdicts
from gateway_auth.http.backend import HttpBackend
from gateway_auth.http.settings import HttpSettings


def _backend(settings: HttpSettings, vhost: str, reactor: Any) -> HttpBackend:
    from gateway_auth.http_client import HttpClient  # Twisted's client is loaded only where it is used

    client = HttpClient(
        reactor,
        "auth-http",
        timeout_s=settings.timeout_s,
        most_parallel=settings.max_requests,
        ca_file=settings.ca_file,
    )
    return HttpBackend(settings, vhost, client)


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the settings."""
    return HttpSettings


@hookimpl
def gateway_authenticators(vhost: str, settings: HttpSettings) -> Sequence[Authenticator]:
    """Offer the authenticator that asks ``user_path``."""
    from twisted.internet import reactor  # the broker chooses the reactor before its plugins start

    return [_backend(settings, vhost, reactor)] if settings.logins else []


@hookimpl
def gateway_authorizers(
    vhost: str, permissions_changed: Callable[[], None], settings: HttpSettings
) -> Sequence[Authorizer]:
    """Offer the authorizer that asks the other paths."""
    from twisted.internet import reactor

    if not settings.permissions:
        return []
    chosen: Any = reactor
    backend = _backend(settings, vhost, chosen)
    verdicts = Verdicts(backend.ask, chosen, settings.cache_ttl_s, permissions_changed)
    return [AskedAuthorizer(verdicts, has_topics=settings.topic_path is not None, disconnect=backend.close)]
