"""Deprecated features of RabbitMQ that a broker uses: which the gateway has."""

from collections.abc import Mapping
from typing import Final

from gateway.cli.ctl.migration.connections import NO_AMQP_1
from gateway.cli.ctl.migration.entities import MIRRORING
from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict

_KEPT: Final = "deprecated in RabbitMQ; the gateway keeps it"

_FEATURES: Final[Mapping[str, tuple[MoveVerdict, str]]] = {
    "global_qos": (MoveVerdict.SAME, _KEPT),
    "management_metrics_collection": (MoveVerdict.SAME, _KEPT),
    "transient_nonexcl_queues": (MoveVerdict.SAME, _KEPT),
    "classic_queue_mirroring": (MoveVerdict.DIFFERS, MIRRORING),
    "queue_master_locator": (MoveVerdict.DIFFERS, "accepted, without effect: a queue has no node of its own"),
    "ram_node_type": (MoveVerdict.DIFFERS, "there are no such nodes: each keeps its data on disk"),
    "amqp_address_v1": (MoveVerdict.MISSING, NO_AMQP_1),
    "amqp_filter_set_bug": (MoveVerdict.MISSING, NO_AMQP_1),
}


def deprecated_finding(name: str) -> MigrationFinding:
    """Return the finding about a deprecated feature in use."""
    verdict, note = _FEATURES.get(name, (MoveVerdict.DIFFERS, "not compared: see RabbitMQ's documentation of it"))
    return MigrationFinding("deprecated feature", name, verdict, note)
