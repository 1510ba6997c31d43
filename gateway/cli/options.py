"""Options of all commands that read the configuration."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from gateway.config import Configured, Settings, load_with_origins

F = TypeVar("F", bound=Callable[..., object])


def configuration_options(command: F) -> F:
    """Add ``--config``, ``--data`` and ``--set`` to a command. ``GATEWAY_CONFIG`` can name the file instead."""
    for option in (
        click.option("--set", "overrides", metavar="SECTION.KEY=VALUE", multiple=True, help="Override a setting."),
        click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="The data directory."),
        click.option(
            "--config",
            type=click.Path(path_type=Path, dir_okay=False),
            envvar="GATEWAY_CONFIG",
            help="The configuration file.",
        ),
    ):
        command = option(command)
    return command


def settings_from(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> Settings:
    """Return the settings for these options. :raises ConfigurationError: if they are invalid."""
    return configured_from(config, data, overrides).settings


def configured_from(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> Configured:
    """Return the settings for these options, and where each was given. :raises ConfigurationError: if invalid."""
    given = (f"data={json.dumps(str(data))}",) if data is not None else ()  # quoted as a TOML string
    return load_with_origins(config, (*overrides, *given), os.environ)
