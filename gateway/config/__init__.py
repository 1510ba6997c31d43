"""Typed settings from TOML."""

from gateway.config.loading import load
from gateway.config.section import Section
from gateway.config.settings import Settings, TlsSettings, VhostSettings

__all__ = ["Section", "Settings", "TlsSettings", "VhostSettings", "load"]
