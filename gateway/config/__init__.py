"""Typed settings from TOML."""

from gateway.config.loading import load
from gateway.config.settings import Section, Settings, Tls, Vhost

__all__ = ["Section", "Settings", "Tls", "Vhost", "load"]
