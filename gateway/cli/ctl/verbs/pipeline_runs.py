"""Verbs for the runs of pipeline jobs: what they found, and their reports."""

from pathlib import Path

import click

from gateway.cli.ctl.errors import Declined, WrongData
from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part
from gateway.cli.ctl.verb import verb

RUNS = NounListing(
    path=("pipeline-runs",),
    columns={
        name: name
        for name in ("name", "job", "started", "finished", "options", "figures", "warnings", "report_bytes", "error")
    },
    defaults=("name", "job", "started", "finished", "warnings", "error"),
    banner="Listing the latest run of each pipeline job ...",
)

#: The members of a run that are objects, whose own members are printed in rows.
_NESTED = ("options", "figures")

name_argument = click.argument("name")


@verb
@columns_argument
def list_pipeline_runs(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the latest run of each pipeline job that wrote to the setting pipeline.results_dir."""
    print_listing(session, RUNS, columns)


@verb
@name_argument
def pipeline_run(session: VerbSession, name: str) -> None:
    """Show a run of a pipeline job: its options, figures and warnings."""
    session.output.announce(f"Run {name} ...")
    with session.on_not_found(_missing(name)):
        found = session.api.get("pipeline-runs", name)
    if session.output.formatter == "json":
        session.output.value(found)
        return
    session.output.rows(("name", "value"), _rows(found))


@verb
@name_argument
@click.argument("file", default="-")
def pipeline_report(session: VerbSession, name: str, file: str) -> None:
    """Write the report of a run, an HTML page, to FILE, or to standard output if it is -."""
    with session.on_not_found(_missing(name, " with a report")):
        report = session.api.raw("pipeline-runs", name, "report")
    if file == "-":
        session.output.text(report.decode(errors="replace"))
        return
    session.output.announce(f"Writing the report of run {name} to {file} ...")
    try:
        Path(file).write_bytes(report)
    except OSError as error:
        raise WrongData(f"cannot write {file}: {error.strerror}") from None


def _missing(name: str, quality: str = "") -> Declined:
    return Declined(f"there is no run '{name}'{quality}: list_pipeline_runs shows those there are")


def _rows(found: Json) -> list[JsonObject]:
    """Return a row for each member of a run, and for each member of an object in it."""
    rows: list[JsonObject] = []
    for name in RUNS.columns:
        value = part(found, name)
        if name in _NESTED and isinstance(value, dict):
            rows += [{"name": f"{name}.{key}", "value": each} for key, each in value.items()]
        elif value not in (None, "", []):
            rows.append({"name": name, "value": value})
    return rows


VERBS = (list_pipeline_runs, pipeline_run, pipeline_report)
