"""Options of all commands that read the configuration."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from gateway.config import Settings, load

F = TypeVar("F", bound=Callable[..., object])


def configuration_options(command: F) -> F:
    """Add ``--config``, ``--data`` and ``--set`` to a command."""
    for option in (
        click.option("--set", "overrides", metavar="SECTION.KEY=VALUE", multiple=True, help="Override a setting."),
        click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="The data directory."),
        click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The configuration file."),
    ):
        command = option(command)
    return command


def settings_from(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> Settings:
    """Return the settings for these options. :raises ConfigurationError: if they are invalid."""
    given = (f"data={json.dumps(str(data))}",) if data is not None else ()  # quoted as a TOML string
    return load(config, (*overrides, *given))
