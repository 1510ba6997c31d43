"""The plugins that a virtual host enables: those of the configuration, changed by those of its record."""

from collections.abc import Mapping

from gateway.kernel.messages.message import Value

#: The value of a record for a plugin that the configuration enables and an operator disabled.
DISABLED = False


def enabled_plugins(configured: Mapping[str, Value], recorded: Mapping[str, Value]) -> dict[str, Value]:
    """Return the settings by plugin, in the order of the calls: those of the configuration first."""
    merged = {**configured, **recorded}
    return {name: settings for name, settings in merged.items() if settings is not DISABLED}
