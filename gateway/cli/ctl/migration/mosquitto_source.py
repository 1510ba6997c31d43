"""Findings about a ``mosquitto.conf``: the conversion of ``gateway migrate``, without writing it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.cli.ctl.errors import WrongData
from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.migration.source_file import text_of
from gateway.cli.migrate.mosquitto import MosquittoFile
from gateway.cli.migrate.target import Target

#: A line such as ``listeners.tcp.default = 5672``; options of Mosquitto have no equals sign.
_RABBITMQ_LINE: Final = re.compile(r"[a-z0-9_.-]+\s+=\s")


def mosquitto_findings(file: Path) -> Iterator[MigrationFinding]:
    """Yield the findings about a file. :raises WrongData: if it cannot be read, or is a ``rabbitmq.conf``."""
    lines = text_of(file)
    first = next((line for line in lines.splitlines() if line.strip() and not line.startswith("#")), "")
    if _RABBITMQ_LINE.match(first):
        raise WrongData(f"{file}: is no mosquitto.conf; gateway migrate converts a rabbitmq.conf")
    target = Target()
    source = MosquittoFile(target)
    source.convert(lines)
    target.text()  # leaves out what the gateway refuses
    if source.tally.carried:
        yield MigrationFinding("line", "", MoveVerdict.SAME, "gateway migrate carries them over", source.tally.carried)
    for comment in target.comments:
        line, _, reason = comment.partition(": ")
        yield MigrationFinding("line", line, MoveVerdict.DIFFERS, reason)
