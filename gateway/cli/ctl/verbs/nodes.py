"""Verbs for the node: cluster name, memory, login statistics, feature flags."""

import click

from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, number, part
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.status import UNITS

ATTEMPTS = ("protocol", "auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded")


@verb
@click.option("--unit", type=click.Choice(list(UNITS)), default="GB", show_default=True, help="Unit of memory sizes.")
def memory_breakdown(session: VerbSession, unit: str) -> None:
    """Print the memory use of the node by category, the largest first."""
    node = session.node()
    session.output.announce(f"Reporting memory breakdown on node {node}...")
    memory = part(session.api.get("nodes", node, "memory"), "memory")
    parts = memory if isinstance(memory, dict) else {}
    total = max(number(memory, "total", "rss"), 1)
    sizes = sorted(((number(parts, name), name) for name, size in parts.items() if isinstance(size, int)), reverse=True)
    rows: list[JsonObject] = [
        {"name": name, "bytes": size, "percentage": round(100 * size / total, 2)} for size, name in sizes
    ]
    if session.output.formatter == "table":
        session.output.text("\n".join(_line(row, unit) for row in rows))
    else:
        session.output.rows(("name", "bytes", "percentage"), rows)


@verb
def list_node_auth_attempt_stats(session: VerbSession) -> None:
    """Print the number of successful and failed logins by protocol."""
    node = session.node()
    session.output.announce(f'Listing authentication attempts for node "{node}" ...')
    session.output.rows(ATTEMPTS, session.api.list("auth", "attempts", node))


@verb
@click.argument("name")
def set_cluster_name(session: VerbSession, name: str) -> None:
    """Set the cluster name, which tools display."""
    session.output.announce(f"Setting cluster name to {name} ...")
    session.api.put("cluster-name", body={"name": name})


@verb
@click.argument("name")
def enable_feature_flag(session: VerbSession, name: str) -> None:
    """Enable a feature flag, or all; all are already enabled."""
    which = "all feature flags" if name == "all" else f'feature flag "{name}"'
    session.output.announce(f"Enabling {which} ...")
    if name != "all":
        with session.reporting_missing(f"feature flag '{name}'"):
            session.api.put("feature-flags", name, "enable", body={})


def _line(row: JsonObject, unit: str) -> str:
    size = round(number(row, "bytes") / UNITS[unit], 4)
    return f"{row['name']}: {size} {unit.lower()} ({row['percentage']}%)"


VERBS = (memory_breakdown, list_node_auth_attempt_stats, set_cluster_name, enable_feature_flag)
