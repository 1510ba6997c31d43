"""Findings about a file of RabbitMQ's definitions."""

import json
from collections.abc import Iterator
from pathlib import Path

from gateway.cli.ctl.errors import WrongData
from gateway.cli.ctl.migration.entities import findings_of
from gateway.cli.ctl.migration.finding import MigrationFinding
from gateway.cli.ctl.migration.source_file import text_of


def definitions_findings(file: Path) -> Iterator[MigrationFinding]:
    """Yield the findings about a file. :raises WrongData: if it cannot be read, or is no JSON object."""
    content = text_of(file)
    try:
        definitions = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise WrongData(f"{file}: is not JSON: {error}") from None
    if not isinstance(definitions, dict):
        raise WrongData(f"{file}: must be a JSON object, as RabbitMQ exports definitions")
    yield from findings_of(definitions)
