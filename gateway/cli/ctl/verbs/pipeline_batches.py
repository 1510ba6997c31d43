"""Verbs for the batches of Spark's sink that are being published."""

import click

from gateway.cli.ctl.listing import NounListing, columns_argument
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject
from gateway.cli.ctl.verb import verb

_COLUMNS = (
    *("name", "user", "producer", "query", "batch", "state", "reason", "rows", "checked", "published", "dropped"),
    *("refused", "committed_at"),
)

BATCHES = NounListing(
    path=(),
    columns={name: name for name in _COLUMNS},
    defaults=("name", "producer", "batch", "state", "published", "rows", "reason"),
    banner="Listing batches of Spark for vhost {vhost} ...",
)


@verb
@columns_argument
def list_pipeline_batches(session: VerbSession, columns: tuple[str, ...]) -> None:
    """List the batches of Spark's sink that are being checked or published."""
    chosen = BATCHES.chosen(columns)
    session.output.announce(BATCHES.banner.format(vhost=session.vhost))
    with session.reporting_missing("the pipeline"):
        found = session.api.get("pipeline", session.vhost, "batches")
    assert isinstance(found, dict)
    batches = found["batches"]
    assert isinstance(batches, list)
    rows: list[JsonObject] = [each for each in batches if isinstance(each, dict)]
    session.output.rows(chosen, [BATCHES.row(each, chosen) for each in rows])


@verb
@click.argument("name")
def end_pipeline_batch(session: VerbSession, name: str) -> None:
    """End a committed batch that is held: the rest of its rows is not published."""
    session.output.announce(f"Ending batch '{name}' in vhost '{session.vhost}' ...")
    with session.reporting_missing(f"committed batch '{name}'"):
        session.api.delete("pipeline", session.vhost, "batches", name)


VERBS = (list_pipeline_batches, end_pipeline_batch)
