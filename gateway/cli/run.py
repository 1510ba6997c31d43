"""``gateway run``: runs the broker in the foreground until SIGTERM or SIGINT."""

from pathlib import Path

import click

from gateway.archive.schemas import check_schemas
from gateway.cli.options import configuration_options, configured_from
from gateway.node.signals import stop_at_once


@click.command()
@configuration_options
@click.option("--control-from-stdin", is_flag=True, hidden=True)
def run(config: Path | None, data: Path | None, overrides: tuple[str, ...], control_from_stdin: bool) -> int:
    """Run the broker until it is stopped."""
    stop_at_once()
    configured = configured_from(config, data, overrides)
    check_schemas(configured.settings)
    # Imported here because the broker installs a reactor and loads every plugin, which other commands do not need.
    from gateway.node.app import run as run_broker

    # Not sys.stdin.buffer: a thread that waits for it holds its lock, and Python would abort at the end.
    control = open(0, "rb", buffering=0, closefd=False) if control_from_stdin else None  # noqa: SIM115
    return run_broker(configured, lambda: configured_from(config, data, overrides), control)
