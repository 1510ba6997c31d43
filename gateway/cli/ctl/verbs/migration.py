"""Moving from another broker."""

from collections.abc import Iterable
from pathlib import Path

import click

from gateway.cli.ctl.errors import CommandFailed
from gateway.cli.ctl.migration.finding import COLUMNS, MigrationFinding, MoveVerdict
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb


class Differs(CommandFailed):
    """Something works in another way after a move."""

    exit_code = 2


class Lacks(CommandFailed):
    """The gateway does not have something that the other broker uses."""

    exit_code = 3


@click.group("migrate")
def migrate() -> None:
    """Show what a move from RabbitMQ or Mosquitto would change."""


@verb
@click.argument("source", required=False)
def check(session: VerbSession, source: str | None) -> None:
    """Show what is the same, what differs and what is missing for a broker that moves here; nothing is changed.

    SOURCE is the URL of the management API of a running RabbitMQ, a file of its definitions (NAME.json), or a
    mosquitto.conf. The login is that of an administrator: --username and --password, or in the URL
    (http://user:password@host:15672), or guest. Without SOURCE, the RabbitMQ is that of --url or of --profile. Exit
    code 0: all is the same; 2: something differs; 3: something is missing.
    """
    found = list(_findings(session, source))
    order = list(MoveVerdict)
    found.sort(key=lambda finding: -order.index(finding.verdict))
    session.output.rows(COLUMNS, [finding.row() for finding in found])
    counts = {verdict: sum(finding.verdict is verdict for finding in found) for verdict in MoveVerdict}
    if counts[MoveVerdict.MISSING]:
        raise Lacks(f"missing: {counts[MoveVerdict.MISSING]}, different: {counts[MoveVerdict.DIFFERS]}")
    if counts[MoveVerdict.DIFFERS]:
        raise Differs(f"different: {counts[MoveVerdict.DIFFERS]}")


def _findings(session: VerbSession, source: str | None) -> Iterable[MigrationFinding]:
    # imported here because other verbs need neither the checks of the kernel nor the settings
    if source is not None and not source.startswith(("http://", "https://")):
        from gateway.cli.ctl.migration.definitions_source import definitions_findings
        from gateway.cli.ctl.migration.mosquitto_source import mosquitto_findings

        session.output.announce(f"Comparing {source} ...")
        file = Path(source)
        return definitions_findings(file) if file.suffix == ".json" else mosquitto_findings(file)
    from gateway.cli.ctl.migration.rabbitmq_source import rabbitmq_findings

    api = session.api if source is None else session.api_at(source)
    session.output.announce(f"Comparing the broker at {api.address.url} ...")
    return rabbitmq_findings(api)


migrate.add_command(check)

VERBS = (migrate,)
