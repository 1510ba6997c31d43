"""``gateway archive``: maintains the archive's Iceberg tables, while a broker runs or not."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from gateway.archive.targets import ICEBERG, archive_directory, iceberg_address
from gateway.cli.options import configuration_options, settings_from
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, DEAD_LETTER_TABLE, TRACE_TABLE, IcebergAddress
from gateway.columnar.tables.schema_files import typed_tables
from gateway.kernel.errors import ConfigurationError, GatewayError, StorageError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from gateway.config import Settings

MIB: Final = 1024 * 1024
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def age(text: str) -> timedelta:
    """Return the time span of ``90d``, ``12h`` or ``30m``."""
    match = re.fullmatch(r"(\d{1,6})([mhd])", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not an age such as 90d, 12h or 30m")
    return int(match[1]) * _UNITS[match[2]]


TABLE = click.option("--table", "names", metavar="NAME", multiple=True, help="Only this table.")


class Tables:
    """The tables of a configuration. Each command opens those that exist."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings
        self.parquet = archive_directory(settings)

    @property
    def address(self) -> IcebergAddress:
        """The address of the tables. :raises ConfigurationError: if the archive has another format."""
        if self._settings.archive.format != ICEBERG:
            raise ConfigurationError(f'archive.format: must be "{ICEBERG}" for this command')
        return iceberg_address(self._settings)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tables, also those that do not exist yet."""
        typed = typed_tables(self._settings.archive.schemas)
        return (ARCHIVE_TABLE, TRACE_TABLE, DEAD_LETTER_TABLE, *typed)

    def named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names that an option gives. :raises BadParameter: if one is unknown."""
        for name in names:
            if name not in self.names:
                raise click.BadParameter(f"{name!r} is not one of the tables {', '.join(self.names)}")
        return names

    @property
    def catalogue(self) -> "Catalog":
        """The catalogue, opened anew."""
        from gateway.columnar.iceberg.catalogue import open_catalogue  # imports pyiceberg, which takes a second

        return open_catalogue(self.address)

    def existing(self, names: tuple[str, ...]) -> "Iterator[tuple[str, Catalog, Table]]":
        """Yield the tables of these names, by default all, with their catalogue."""
        from pyiceberg.exceptions import NoSuchTableError

        catalogue = self.catalogue
        for name in self.named(names) or self.names:
            try:
                yield name, catalogue, catalogue.load_table((self.address.namespace, name))
            except NoSuchTableError:
                continue

    def bodies(self, name: str, vhost: str, source: tuple[str, str | None], most: int) -> Iterator[bytes]:
        """Yield bodies of an archive, the source of which is its kind and name. :raises StorageError: without table."""
        from gateway.columnar.iceberg.bodies import bodies_of

        for _, _, table in self.existing((name,)):
            yield from bodies_of(table, {"vhost": vhost, "source": source[0], "source_name": source[1]}, most)
            return
        raise StorageError(f"the table {name} does not exist")


class OneLineGroup(click.Group):
    """A group whose commands fail with one line: catalogues and file systems have exceptions of their own."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. :raises StorageError: for an error of a library."""
        try:
            return super().invoke(ctx)
        except (GatewayError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            raise StorageError(f"{type(error).__name__}: {' '.join(str(error).split())}") from None


@click.group(cls=OneLineGroup)
@configuration_options
@click.pass_context
def archive(context: click.Context, config: Path | None, data: Path | None, overrides: tuple[str, ...]) -> None:
    """Show and maintain the archive's Iceberg tables. The broker may be running.

    Each change is a commit: readers see the table as before or after it. Commands can be interrupted and repeated.
    """
    context.obj = Tables(settings_from(config, data, overrides))


@archive.command()
@click.pass_obj
def status(tables: Tables) -> int:
    """Show rows, files, bytes and snapshots of each table, and the metadata that readers can open."""
    name = ""
    for name, _, table in tables.existing(()):
        snapshot = table.current_snapshot()
        summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
        totals = {word: summary.get(f"total-{key}", "0") for word, key in _TOTALS.items()}
        figures = " ".join(f"{word}={value}" for word, value in totals.items())
        click.echo(f"{name} {figures} snapshots={len(table.snapshots())} metadata={table.metadata_location}")
    if not name:
        click.echo("no table yet: the first segment that is filed creates it")
    return 0


_TOTALS: Final = {"rows": "records", "files": "data-files", "bytes": "files-size"}


@archive.command()
@click.option(
    "--table", "names", type=click.Choice([ARCHIVE_TABLE, TRACE_TABLE]), multiple=True, help="Only this table."
)
@click.pass_obj
def adopt(tables: Tables, names: tuple[str, ...]) -> int:
    """Add the files of the archive in the Parquet format to the tables, where they are.

    Their rows are then part of the table. The job `compact` of the pipeline no longer changes these directories.
    """
    from gateway.columnar.iceberg.adoption import adopt as adopt_files
    from gateway.columnar.iceberg.catalogue import SCHEMAS, open_table

    catalogue = tables.catalogue
    for name in names or (ARCHIVE_TABLE, TRACE_TABLE):
        root = tables.parquet / name
        if root.is_dir():
            table = open_table(catalogue, tables.address, name, SCHEMAS[name])
            for day, count in adopt_files(catalogue, table, name, root):
                click.echo(f"{day.relative_to(tables.parquet)}: {count} files adopted")
        else:
            click.echo(f"{root}: no archive in the Parquet format")
    return 0


@archive.command()
@TABLE
@click.option("--small", type=click.IntRange(min=1), default=32, metavar="MIB", help="Merge files smaller than this.")
@click.option("--target", type=click.IntRange(min=1), default=256, metavar="MIB", help="Size of merged files.")
@click.pass_obj
def compact(tables: Tables, names: tuple[str, ...], small: int, target: int) -> int:
    """Merge the small files of each partition."""
    from gateway.columnar.iceberg.compaction import compact as compact_table

    for name, catalogue, table in tables.existing(names):
        for merged, made in compact_table(catalogue, table, small * MIB, target * MIB):
            click.echo(f"{name}: {merged} files merged into {made}")
    return 0


@archive.command()
@TABLE
@click.option("--rows", type=age, metavar="AGE", help="Remove files whose rows are all older, such as 90d.")
@click.option("--snapshots", type=age, metavar="AGE", help="Remove older snapshots, such as 7d.")
@click.pass_obj
def expire(tables: Tables, names: tuple[str, ...], rows: timedelta | None, snapshots: timedelta | None) -> int:
    """Remove old rows and old snapshots from the tables. `tidy` removes their files."""
    from gateway.columnar.iceberg.retention import expire_rows, expire_snapshots

    if rows is None and snapshots is None:
        raise click.UsageError("--rows or --snapshots is required")
    now = datetime.now(UTC)
    for name, catalogue, table in tables.existing(names):
        if rows is not None:
            table, count = expire_rows(catalogue, table, now - rows)
            click.echo(f"{name}: {count} files of rows expired")
        if snapshots is not None:
            click.echo(f"{name}: {expire_snapshots(catalogue, table, now - snapshots)} snapshots expired")
    return 0


@archive.command()
@TABLE
@click.option(
    "--grace", type=age, default="1d", metavar="AGE", help="Keep files that are not as old as this (default: 1d)."
)
@click.pass_obj
def tidy(tables: Tables, names: tuple[str, ...], grace: timedelta) -> int:
    """Remove files that no snapshot needs: of crashed commits, and of expired rows and snapshots."""
    from gateway.columnar.iceberg.tidying import tidy as tidy_table

    if grace < timedelta(minutes=30):
        raise click.UsageError("--grace must be at least 30m, because a commit under way needs its files")
    for name, _, table in tables.existing(names):
        count = tidy_table(table, tables.parquet / name, datetime.now(UTC) - grace)
        click.echo(f"{name}: {count} files removed")
    return 0


@archive.command()
@click.option("--samples", type=click.File("rb"), metavar="FILE", help="Read a JSON value from each line; - is stdin.")
@click.option("--table", "name", default=ARCHIVE_TABLE, metavar="NAME", help="Read bodies of this table otherwise.")
@click.option("--vhost", default="/", metavar="NAME", help="Bodies of this virtual host.")
@click.option("--queue", metavar="NAME", help="Bodies of the archive of this queue.")
@click.option("--exchange", metavar="NAME", help="Bodies of the archive of this exchange.")
@click.option("--rows", type=click.IntRange(min=1), default=10_000, metavar="COUNT", help="Read so many at most.")
@click.pass_obj
def infer(
    tables: Tables,
    samples: BinaryIO | None,
    name: str,
    vhost: str,
    queue: str | None,
    exchange: str | None,
    rows: int,
) -> int:
    """Print a JSON Schema that samples of bodies match, for a file of `archive.schemas`.

    The samples are the bodies of an archive, or lines of a file.
    """
    from gateway.columnar.bodies.inference import Inference

    if (queue, exchange, samples).count(None) != 2:
        raise click.UsageError("one of --queue, --exchange and --samples is required")
    inference = Inference()
    if samples is not None:
        bodies: Iterable[bytes] = islice((line for line in samples if line.strip()), rows)
    else:
        bodies = tables.bodies(name, vhost, ("queue", queue) if queue is not None else ("exchange", exchange), rows)
    for body in bodies:
        inference.add(body)
    for reason, count in inference.refused.most_common(3):
        click.echo(f"{count} samples are left out: {reason}", err=True)
    if not inference.samples:
        raise StorageError("there are no samples")
    click.echo(json.dumps(inference.schema(), indent=2, ensure_ascii=False))
    return 0


@archive.command()
@click.argument("name", metavar="TABLE")
@click.pass_obj
def register(tables: Tables, name: str) -> int:
    """Add the table in its directory to a catalogue that has lost it."""
    from gateway.columnar.iceberg.catalogue import register_table

    tables.named((name,))
    table = register_table(tables.catalogue, tables.address, name)
    click.echo(f"{name}: registered {table.metadata_location}")
    return 0
