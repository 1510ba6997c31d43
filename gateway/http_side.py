"""From settings to what the HTTP listener and the WebSockets need."""

from dataclasses import fields

from gateway.config import Settings
from gateway.management.screening import Screening, screening
from gateway.management.web.limits import HttpLimits


def http_limits(settings: Settings) -> HttpLimits:
    """Return what clients of the API may hold."""
    return HttpLimits(**{field.name: getattr(settings.management, field.name) for field in fields(HttpLimits)})


def http_screening(settings: Settings) -> Screening:
    """Return which pages may use the API."""
    management = settings.management
    return screening(management.cors_allow_origins, management.allow_hosts, management.cors_max_age_s)
