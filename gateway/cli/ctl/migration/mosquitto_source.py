"""Findings about a ``mosquitto.conf``: the conversion of ``gateway migrate``, without writing it."""

from collections.abc import Iterator
from pathlib import Path

from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.migration.source_file import text_of
from gateway.cli.migrate.mosquitto import MosquittoFile
from gateway.cli.migrate.target import Target


def mosquitto_findings(file: Path) -> Iterator[MigrationFinding]:
    """Yield the findings about a file. :raises WrongData: if it cannot be read."""
    lines = text_of(file)
    target = Target()
    source = MosquittoFile(target)
    source.convert(lines)
    target.text()  # leaves out what the gateway refuses
    if source.tally.carried:
        yield MigrationFinding("line", "", MoveVerdict.SAME, "gateway migrate carries them over", source.tally.carried)
    for comment in target.comments:
        line, _, reason = comment.partition(": ")
        yield MigrationFinding("line", line, MoveVerdict.DIFFERS, reason)
