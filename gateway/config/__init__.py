"""Typed settings from TOML."""

from gateway.config.loading import Configured, load, load_with_origins
from gateway.config.section import Section
from gateway.config.settings import Settings, TlsSettings, VhostSettings

__all__ = ["Configured", "Section", "Settings", "TlsSettings", "VhostSettings", "load", "load_with_origins"]
