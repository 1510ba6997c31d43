"""SQL over streams, archives, traces and the audit record, which rabbitmqctl does not have."""

import sys
from collections.abc import Iterable

import click

from gateway.cli.ctl.errors import Declined, NotPermitted
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import part
from gateway.cli.ctl.verb import verb
from gateway.kernel.errors import GatewayError

MISSING = "gatewayctl sql needs DuckDB: pip install 'gateway-broker[sql]'"


@verb
@click.argument("query")
@click.option("--memory-limit", "memory", default="1GB", metavar="SIZE", help="Memory of the query. [1GB]")
def sql(session: VerbSession, query: str, memory: str) -> None:
    """Run a query in SQL over streams, archives, traces and the audit record; `-` reads it from standard input.

    Tables are those of one virtual host that the user may read, such as streams."orders", archive."orders",
    typed."orders", dead_letters, traces and audit; "show tables" lists them. depth('2026-11-27 03:00:00') has the
    depths of queues at a moment. The query runs here, in DuckDB.
    """
    try:
        from gateway.sql.query import SqlQuery  # imports DuckDB and Arrow
        from gateway.sql.values import json_value, unique_names
    except ImportError as missing:
        raise Declined(MISSING if missing.name in ("duckdb", "pyarrow") else str(missing)) from None
    text = sys.stdin.read() if query == "-" else query
    try:
        with SqlQuery(session.api, session.vhost, text, memory, lambda: _tags(session)).run() as (names, rows):
            columns = unique_names(names)
            found = (dict(zip(columns, map(json_value, row), strict=True)) for row in rows)
            session.output.stream(columns, found)
    except GatewayError as error:
        raise Declined(str(error)) from None


def _tags(session: VerbSession) -> Iterable[str]:
    """Return the tags of the user; none without one that opens the management API."""
    try:
        tags = part(session.api.get("whoami"), "tags")
    except NotPermitted:
        return ()
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else ()


VERBS = (sql,)
