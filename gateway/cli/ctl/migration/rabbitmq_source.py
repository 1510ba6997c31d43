"""Findings about a running RabbitMQ, from its management API."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.errors import CommandFailed, NotPermitted
from gateway.cli.ctl.migration.entities import findings_of
from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.migration.rabbitmq_plugins import plugin_finding
from gateway.cli.ctl.values import Json, JsonObject, number, part, text

_MECHANISMS: Final = frozenset({"", "none", "PLAIN", "AMQPLAIN", "EXTERNAL", "OAUTHBEARER", "SCRAM-SHA-256", "N/A"})


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
        note = "deprecated in RabbitMQ; the gateway keeps it"
        yield MigrationFinding("deprecated feature", text(feature, "name"), MoveVerdict.SAME, note)
    yield from _connections(list(api.list("connections")))
    if streams := _optional(api, "stream", "connections"):
        note = "the stream protocol: clients read streams over AMQP or STOMP"
        yield MigrationFinding("connection", "stream protocol", MoveVerdict.MISSING, note, len(streams))
    yield from findings_of(api.get("definitions"))
    if messages := number(overview, "queue_totals", "messages"):
        note = "a shovel for each queue moves them (docs/moving-from-rabbitmq.md)"
        yield MigrationFinding("message", "", MoveVerdict.SAME, note, messages)


def _optional(api: ApiClient, *path: str) -> list[JsonObject]:
    """Return a list that older versions do not have, or only with a plugin."""
    try:
        return list(api.list(*path))
    except NotPermitted:
        raise
    except CommandFailed:
        return []


def _texts(value: Json) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _feature_flags(flags: list[JsonObject]) -> Iterator[MigrationFinding]:
    if enabled := [flag for flag in flags if text(flag, "state") == "enabled"]:
        yield MigrationFinding("feature flag", "", MoveVerdict.SAME, "what they name is always on here", len(enabled))


def _connections(connections: list[JsonObject]) -> Iterator[MigrationFinding]:
    for protocol, count in sorted(Counter(text(each, "protocol") for each in connections).items()):
        if protocol.startswith("AMQP 1-0"):
            note = "clients use AMQP 0-9-1, MQTT 5 or STOMP"
            yield MigrationFinding("connection", "AMQP 1.0", MoveVerdict.MISSING, note, count)
        else:
            yield MigrationFinding("connection", protocol or "unknown", MoveVerdict.SAME, "", count)
    mechanisms = Counter(text(each, "auth_mechanism") for each in connections)
    for mechanism, count in sorted(mechanisms.items()):
        if mechanism not in _MECHANISMS:
            note = "no such mechanism; a plugin can add it (docs/plugins)"
            yield MigrationFinding("login mechanism", mechanism, MoveVerdict.MISSING, note, count)
