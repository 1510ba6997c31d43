"""``gateway migrate``: a gateway.toml from RabbitMQ and Mosquitto, or the data of a single node into a cluster."""

from pathlib import Path
from typing import Final, Protocol

import click

from gateway.cli.migrate.advanced import AdvancedFile
from gateway.cli.migrate.mosquitto import MosquittoFile
from gateway.cli.migrate.rabbitmq import RabbitmqFile
from gateway.cli.migrate.target import Tally, Target
from gateway.cli.options import settings_from
from gateway.config import load
from gateway.kernel.errors import ConfigurationError

#: The share of a file's lines with ``=`` above which it is one of RabbitMQ.
_HALF: Final = 0.5


class SourceFile(Protocol):
    """The conversion of one kind of file."""

    tally: Tally

    def convert(self, text: str) -> None:
        """Convert a file."""
        ...


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("gateway.toml"))
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The configuration of the cluster.")
@click.option("--set", "overrides", metavar="SECTION.KEY=VALUE", multiple=True, help="Override a setting of it.")
def migrate(files: tuple[Path, ...], output: Path, force: bool, config: Path | None, overrides: tuple[str, ...]) -> int:
    """Write a gateway.toml from files of RabbitMQ and Mosquitto, with a comment for each line without a setting.

    With the data directory of a single node, or a backup, instead of files: write all its data into an empty cluster,
    whose [cluster] section --config or --set gives. No gateway may run on either. It can be interrupted, and is
    started again with the same command. With several cells the virtual hosts of one directory are spread over them;
    the backups of the cells of a cluster are given as one directory for each cell, in their order.

    The files are rabbitmq.conf, advanced.config or rabbitmq.config (Erlang terms), and mosquitto.conf. A file is one of
    Mosquitto if its name has "mosquitto", or if few of its lines have an equals sign. Users, queues and policies of
    RabbitMQ come with its definitions: export them, and set load_definitions.
    """
    if any(file.is_dir() for file in files):
        return _into_cluster(files, config, overrides)
    if config is not None or overrides:
        raise click.UsageError("--config and --set are for a migration of a data directory into a cluster")
    if output.exists() and not force:
        raise ConfigurationError(f"{output}: exists; give --force to replace it, or --output")
    target = Target()
    converted = [(file, *_convert(file, target)) for file in files]
    document = target.text()
    try:
        output.write_text(document, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{output}: cannot be written: {error.strerror}") from None
    for file, kind, source in converted:
        tally = source.tally
        click.echo(f"{file} ({kind}): {tally.carried} lines carried over, {tally.left} not")
    click.echo(f"{output}: {len(target.settings)} settings, {len(target.comments)} comments; see gateway check")
    try:
        load(output)
    except ConfigurationError as error:
        click.echo(f"before gateway check accepts it:\n{error}", err=True)
    return 0


def _into_cluster(paths: tuple[Path, ...], config: Path | None, overrides: tuple[str, ...]) -> int:
    """Migrate the data of a single node, or one directory for each cell, into a cluster."""
    if not all(path.is_dir() for path in paths):
        raise click.UsageError("a migration into a cluster takes data directories, and no other files")
    if len({path.resolve() for path in paths}) < len(paths):
        raise click.UsageError("a data directory is given twice")
    settings = settings_from(config, None, overrides)
    if not settings.cluster.servers:
        raise ConfigurationError("cluster.servers: is not set; a data directory is migrated into a cluster")
    # Imported here because a reactor is installed, and because other commands do not need the store.
    from gateway.node.cluster.migrating import run_migration

    run_migration(settings.cluster, paths, click.echo)
    return 0


def _convert(file: Path, target: Target) -> tuple[str, SourceFile]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8") from None
    if file.suffix == ".config" or text.lstrip().startswith("["):
        advanced = AdvancedFile(target)
        advanced.convert(text)
        return "RabbitMQ, Erlang terms", advanced
    is_mosquitto = "mosquitto" in file.name or ("rabbit" not in file.name and not _has_equals(text))
    source: SourceFile = MosquittoFile(target) if is_mosquitto else RabbitmqFile(target)
    source.convert(text)
    return ("Mosquitto" if is_mosquitto else "RabbitMQ"), source


def _has_equals(text: str) -> bool:
    """Return whether most lines are ``key = value``."""
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith(("#", "%"))]
    return sum("=" in line for line in lines) >= _HALF * max(1, len(lines))
