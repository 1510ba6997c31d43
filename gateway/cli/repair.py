"""``gateway repair``: the records that the broker could not use and set aside, listed, exported, dropped, put back."""

import json
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.options import configuration_options, settings_from
from gateway.kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from gateway_lmdb.quarantine import Quarantined

NUMBERS = click.argument("numbers", type=click.IntRange(min=1), nargs=-1, metavar="[NUMBER]...")


@click.group(invoke_without_command=True)
@configuration_options
@click.pass_context
def repair(context: click.Context, config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> None:
    """List, export, drop or put back records that the broker could not use. The broker must not run.

    A record that cannot be used does not keep the broker from starting: it is set aside in the store, with the reason,
    and everything else goes on. Without a command the records are listed.
    """
    settings = settings_from(config, data, overrides)
    if settings.storage.engine != "lmdb":
        raise ConfigurationError(f"storage.engine is '{settings.storage.engine}', which sets nothing aside")
    context.obj = settings.data
    if context.invoked_subcommand is None:
        context.invoke(list_records)


@repair.command("list")
@click.pass_obj
def list_records(data: Path) -> int:
    """List the records that are set aside: number, kind, key, size and reason."""
    from gateway_lmdb.repair import set_aside_in  # the other commands do without the store

    found = set_aside_in(data)
    for number, aside in enumerate(found, 1):
        click.echo(f"{number}\t{aside.kind}\t{_shown(aside)}\t{len(aside.record)} bytes\t{aside.reason}")
    click.echo(f"{len(found)} records are set aside in {data}", err=True)
    return 0


@repair.command()
@click.pass_obj
def check(data: Path) -> int:
    """Look at every page of the store that is in use: a start looks only at those that it reads."""
    from gateway_lmdb.repair import check_pages

    click.echo(f"{check_pages(data)} pages are in use, and none is damaged")
    return 0


@repair.command()
@click.pass_obj
def export(data: Path) -> int:
    """Write the records that are set aside to the standard output, one JSON object a line, bytes in base64."""
    from gateway_lmdb.repair import set_aside_in

    for number, aside in enumerate(set_aside_in(data), 1):
        said = {
            "number": number,
            "kind": aside.kind,
            "key": [part if isinstance(part, bool | int | str | None) else str(part) for part in aside.name],
            "reason": aside.reason,
            "table": aside.table,
            "table_key": b64encode(aside.key).decode(),
            "record": b64encode(aside.record).decode(),
        }
        click.echo(json.dumps(said))
    return 0


@repair.command()
@NUMBERS
@click.option("--all", "all_of_them", is_flag=True, help="Drop every record that is set aside.")
@click.pass_obj
def drop(data: Path, numbers: tuple[int, ...], all_of_them: bool) -> int:
    """Remove records for good: those with these numbers of the list, or --all."""
    from gateway_lmdb.repair import drop_from

    _require_choice(numbers, all_of_them)
    click.echo(f"{drop_from(data, numbers)} records dropped")
    return 0


@repair.command()
@NUMBERS
@click.option("--all", "all_of_them", is_flag=True, help="Put back every record that is set aside.")
@click.pass_obj
def retry(data: Path, numbers: tuple[int, ...], all_of_them: bool) -> int:
    """Put records back where they were: the next start tries them again. A newer record of the same key stays."""
    from gateway_lmdb.repair import put_back_in

    _require_choice(numbers, all_of_them)
    click.echo(f"{put_back_in(data, numbers)} records put back")
    return 0


def _require_choice(numbers: tuple[int, ...], all_of_them: bool) -> None:
    if bool(numbers) == all_of_them:
        raise click.UsageError("name the numbers of records, or --all")


def _shown(aside: "Quarantined") -> str:
    """Return the key of a record in one line."""
    return json.dumps([part if isinstance(part, bool | int | str | None) else str(part) for part in aside.name])
