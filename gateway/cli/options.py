"""The options that every command which reads the configuration takes."""

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
        click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Keep the data here."),
        click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="Read the settings from here."),
    ):
        command = option(command)
    return command


def settings_from(config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> Settings:
    """Return the settings that the options ask for. :raises ConfigurationError: when something is wrong with them."""
    given = (f"data={json.dumps(str(data))}",) if data is not None else ()  # a TOML string, whatever is in it
    return load(config, (*overrides, *given))
