"""Typed settings from TOML."""

from gateway.config.loading import load
from gateway.config.section import Section
from gateway.config.settings import Settings, Tls, Vhost

__all__ = ["Section", "Settings", "Tls", "Vhost", "load"]
