"""Limits and origins of the HTTP listener and the WebSockets from the settings."""

from dataclasses import fields
from typing import Final

from gateway.config import Settings
from gateway.config.web_socket import WebSocketSection
from gateway.management.http.cross_origin import CrossOriginPolicy, cross_origin_policy
from gateway.management.web.limits import HttpLimits
from gateway.net.origins import OriginRules

#: The listeners of the HTTP API.
MANAGEMENT: Final = "management"
MANAGEMENT_TLS: Final = "management_tls"


def management_ports(settings: Settings) -> dict[str, int]:
    """Return the ports of the HTTP API by listener, without those that are off."""
    ports = {MANAGEMENT: settings.management.port, MANAGEMENT_TLS: settings.management_tls.port}
    return {name: port for name, port in ports.items() if port is not None}


def http_limits(settings: Settings) -> HttpLimits:
    """Return the limits for clients of the API."""
    return HttpLimits(**{field.name: getattr(settings.management, field.name) for field in fields(HttpLimits)})


def http_cross_origin_policy(settings: Settings) -> CrossOriginPolicy:
    """Return the origins whose pages may use the API."""
    management = settings.management
    return cross_origin_policy(management.cors_allow_origins, management.allow_hosts, management.cors_max_age_s)


def web_origins(web: WebSocketSection) -> OriginRules:
    """Return the origins that may open a WebSocket: this host on any port, and the origins of the setting."""
    return OriginRules(tuple(web.allow_origins), tuple(web.allow_hosts), any_port=True)
