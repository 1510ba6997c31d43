"""``gateway plugin``: help for authors of plugins. Running brokers are changed with ``gatewayctl plugin``."""

import keyword
import re
from pathlib import Path
from typing import Final

import click

from gateway.cli.plugin_package import KINDS, plugin_files
from gateway.plugins.registry import BUILT_IN_MODULES

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@click.group()
def plugin() -> None:
    """Write a plugin. To change the plugins of a running broker, use gatewayctl plugin."""


@plugin.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(list(KINDS)), default="exchange", show_default=True, help="What it supplies.")
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), help="Where it is written. [./NAME]")
def new(name: str, kind: str, directory: Path | None) -> None:
    """Write a package with a working plugin and its test into a new directory."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise click.UsageError(f"a plugin's name is lower-case letters, digits and single hyphens, not {name!r}")
    if name in BUILT_IN_MODULES:
        raise click.UsageError(f"{name} is a built-in plugin; choose another name")
    place = directory if directory is not None else Path(name)
    if place.exists() and any(place.iterdir()):
        raise click.UsageError(f"{place} exists and is not empty")
    place.mkdir(parents=True, exist_ok=True)
    for path, text in plugin_files(name, kind).items():
        (place / path).write_text(text, encoding="utf-8")
        click.echo(place / path)
