"""Findings about a running RabbitMQ, from its management API."""

from collections.abc import Iterator

from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.errors import UnknownEntity
from gateway.cli.ctl.migration.connections import NO_STREAM, STREAM, mechanism_findings, protocol_findings
from gateway.cli.ctl.migration.deprecated_features import deprecated_finding
from gateway.cli.ctl.migration.entities import findings_of
from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.migration.rabbitmq_plugins import plugin_finding
from gateway.cli.ctl.values import Json, JsonObject, number, part, text


def rabbitmq_findings(api: ApiClient) -> Iterator[MigrationFinding]:
    """Yield the findings about a broker.

    :raises CommandFailed: if it does not answer, or the user is no administrator.
    """
    overview = api.get("overview")
    version = text(overview, "product_version") or text(overview, "rabbitmq_version")
    name = f"{text(overview, 'product_name') or 'RabbitMQ'} {version}"
    yield MigrationFinding("broker", name, MoveVerdict.SAME, "clients see a RabbitMQ")
    nodes = list(api.list("nodes"))
    if len(nodes) > 1:
        note = "one leader for all queues of a virtual host; three NATS servers have the data (docs/cluster.md)"
        yield MigrationFinding("node", "a cluster", MoveVerdict.DIFFERS, note, len(nodes))
    for plugin in sorted({plugin for node in nodes for plugin in _texts(part(node, "enabled_plugins"))}):
        yield plugin_finding(plugin)
    yield from _feature_flags(_optional(api, "feature-flags"))
    for feature in _optional(api, "deprecated-features", "used"):
        yield deprecated_finding(text(feature, "name"))
    connections = list(api.list("connections"))
    yield from protocol_findings(connections)
    yield from mechanism_findings(connections)
    listed_streams = sum(text(each, "protocol") == STREAM for each in connections)
    if (streams := len(_optional(api, "stream", "connections"))) > listed_streams:
        yield MigrationFinding("connection", STREAM, MoveVerdict.MISSING, NO_STREAM, streams - listed_streams)
    default_type = text(overview, "default_queue_type")
    if default_type not in ("", "undefined", "classic"):
        note = f'set queues.default_queue_type = "{default_type}"'
        yield MigrationFinding("default queue type", default_type, MoveVerdict.DIFFERS, note)
    yield from findings_of(api.get("definitions"))
    if messages := number(overview, "queue_totals", "messages"):
        note = "a shovel for each queue moves them (docs/moving-from-rabbitmq.md)"
        yield MigrationFinding("message", "", MoveVerdict.SAME, note, messages)


def _optional(api: ApiClient, *path: str) -> list[JsonObject]:
    """Return a list that older versions do not have, or only with a plugin: it is empty if there is no such path."""
    try:
        return list(api.list(*path))
    except UnknownEntity:
        return []


def _texts(value: Json) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _feature_flags(flags: list[JsonObject]) -> Iterator[MigrationFinding]:
    if enabled := [flag for flag in flags if text(flag, "state") == "enabled"]:
        yield MigrationFinding("feature flag", "", MoveVerdict.SAME, "what they name is always on here", len(enabled))
