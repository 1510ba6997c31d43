"""``gateway repair``: lists, exports, drops or restores records that the broker could not read and set aside."""

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
    """List, export, drop or restore records that the broker could not read. The broker must not run.

    An unreadable record does not keep the broker from starting: it is set aside in the store, with the reason, and the
    broker starts without it. Without a subcommand, the records are listed.
    """
    settings = settings_from(config, data, overrides)
    if settings.storage.engine != "lmdb":
        raise ConfigurationError(f"storage.engine is '{settings.storage.engine}', but only 'lmdb' sets records aside")
    context.obj = settings.data
    if context.invoked_subcommand is None:
        context.invoke(list_records)


@repair.command("list")
@click.pass_obj
def list_records(data: Path) -> int:
    """List the records that are set aside: number, kind, key, size and reason."""
    from gateway_lmdb.repair import set_aside_in  # imported here because other commands do not need the store

    found = set_aside_in(data)
    for number, each in enumerate(found, 1):
        click.echo(f"{number}\t{each.kind}\t{_shown(each)}\t{len(each.record)} bytes\t{each.reason}")
    click.echo(f"{len(found)} records are set aside in {data}", err=True)
    return 0


@repair.command()
@click.pass_obj
def check(data: Path) -> int:
    """Check every page of the store that is in use; a start checks only those that it reads."""
    from gateway_lmdb.repair import check_pages

    click.echo(f"{check_pages(data)} pages are in use, and none is damaged")
    return 0


@repair.command()
@click.pass_obj
def export(data: Path) -> int:
    """Write the records that are set aside to standard output, one JSON object a line, bytes in base64."""
    from gateway_lmdb.repair import set_aside_in

    for number, each in enumerate(set_aside_in(data), 1):
        exported = {
            "number": number,
            "kind": each.kind,
            "key": [part if isinstance(part, bool | int | str | None) else str(part) for part in each.name],
            "reason": each.reason,
            "table": each.table,
            "table_key": b64encode(each.key).decode(),
            "record": b64encode(each.record).decode(),
        }
        click.echo(json.dumps(exported))
    return 0


@repair.command()
@NUMBERS
@click.option("--all", "all_records", is_flag=True, help="Drop every record that is set aside.")
@click.pass_obj
def drop(data: Path, numbers: tuple[int, ...], all_records: bool) -> int:
    """Delete records permanently: those with these numbers of the list, or --all."""
    from gateway_lmdb.repair import drop_from

    _require_choice(numbers, all_records)
    click.echo(f"{drop_from(data, numbers)} records dropped")
    return 0


@repair.command()
@NUMBERS
@click.option("--all", "all_records", is_flag=True, help="Restore every record that is set aside.")
@click.pass_obj
def retry(data: Path, numbers: tuple[int, ...], all_records: bool) -> int:
    """Restore records to their tables, so that the next start reads them. A newer record of the same key is kept."""
    from gateway_lmdb.repair import put_back_in

    _require_choice(numbers, all_records)
    click.echo(f"{put_back_in(data, numbers)} records restored")
    return 0


def _require_choice(numbers: tuple[int, ...], all_records: bool) -> None:
    if bool(numbers) == all_records:
        raise click.UsageError("give either the numbers of records or --all")


def _shown(each: "Quarantined") -> str:
    """Return the key of a record on one line."""
    return json.dumps([part if isinstance(part, bool | int | str | None) else str(part) for part in each.name])
