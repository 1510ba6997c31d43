"""The permanent identity of the cluster, which RabbitMQ keeps as the global parameter ``internal_cluster_id``."""

import secrets
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.topology import ParameterRecord

#: The name of the global parameter.
CLUSTER_ID: Final = "internal_cluster_id"

_RANDOM_BYTES: Final = 16


def ensure_cluster_id(broker: Broker) -> None:
    """Give a broker without an identity one, at its first start."""
    record = ParameterRecord("", "", CLUSTER_ID, f"rabbitmq-cluster-id-{secrets.token_urlsafe(_RANDOM_BYTES)}")
    if record.key not in broker.parameters:
        broker.parameters.put(record)
