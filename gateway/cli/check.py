"""``gateway check``: would the broker start with this configuration?"""

from pathlib import Path

import click

from gateway.cli.options import configuration_options, settings_from
from gateway.config import Settings
from gateway.config.writing import effective
from gateway.definitions import read_definitions


@click.command()
@configuration_options
def check(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> int:
    """Check the settings, the plugins and the definitions, and print the effective settings as TOML."""
    settings = settings_from(config, data, overrides)
    check_plugins(settings)
    if settings.load_definitions is not None:
        read_definitions(settings.load_definitions)
    click.echo(effective(settings), nl=False)
    return 0


def check_plugins(settings: Settings) -> None:
    """Load every plugin and make the view of each virtual host that is named in the settings.

    :raises ConfigurationError: for the first plugin that is broken, missing, or dislikes its settings.
    """
    from gateway.plugin_registry import load_plugins  # plugins import much that other commands do without

    registry = load_plugins(settings.plugins_dir)
    for name, vhost in settings.vhosts.items():
        registry.view(name, vhost.plugins)
