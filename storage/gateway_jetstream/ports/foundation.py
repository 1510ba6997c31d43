"""The founding of a cluster: its name and number of shards are written once, and are the same for each node."""

import json
from dataclasses import dataclass
from typing import Any, Final

from gateway.cluster.errors import ClusterMismatch, Outdated, Unanswered
from gateway.cluster.metadata import NEVER, Key
from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.publishing import JetStreamPublisher, StreamPublisher
from gateway_jetstream.ports.bus import JetStreamBus
from gateway_jetstream.ports.layout import Layout
from gateway_jetstream.ports.metadata import JetStreamMetadata
from gateway_jetstream.ports.queue_logs import JetStreamQueueLogs

#: The key of the cluster's own record.
FOUNDING: Final[Key] = ("cluster",)

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class JetStreamCluster:
    """The three ports of one cluster."""

    metadata: JetStreamMetadata
    logs: JetStreamQueueLogs
    bus: JetStreamBus
    layout: Layout


async def open_cluster(
    client: NatsClient,
    reactor: Any,  # Any: Twisted's interfaces are not types
    name: str,
    *,
    shards: int = 8,
    prefix: str = "gateway",
    publish: StreamPublisher | None = None,
) -> JetStreamCluster:
    """Return the ports of a cluster, which the first node founds with ``shards``; the others take its number.

    :raises ClusterMismatch: if the streams belong to a cluster of another name, or cannot be created.
    :raises Unanswered: if the engine does not answer.
    """
    api = JetStreamApi(client)
    publish = publish or JetStreamPublisher(client)
    metadata = JetStreamMetadata(api, publish, reactor, Layout(shards, prefix))
    try:
        await metadata.create()
        layout = Layout(await _founded(metadata, name, shards), prefix)
        logs = JetStreamQueueLogs(api, publish, reactor, layout)
        await logs.create()
    except NatsError as error:
        raise ClusterMismatch(f"the streams of the cluster {name} cannot be created: {error}") from None
    return JetStreamCluster(metadata, logs, JetStreamBus(client, reactor, layout), layout)


def metadata_of(client: NatsClient, reactor: Any, prefix: str = "gateway") -> JetStreamMetadata:  # Any: as above
    """Return the metadata of a cluster that exists already."""
    return JetStreamMetadata(JetStreamApi(client), JetStreamPublisher(client), reactor, Layout(1, prefix))


async def _founded(metadata: JetStreamMetadata, name: str, shards: int) -> int:
    """Return the number of shards of the cluster, after its name was compared or written."""
    body = json.dumps({"version": _VERSION, "name": name, "shards": shards}).encode()
    try:
        await metadata.put(FOUNDING, body, NEVER)
    except Outdated:
        entry = await metadata.get(FOUNDING)
        if entry is None:
            raise Unanswered("the record of the cluster cannot be read") from None
        return decode_founding(entry.value or b"", name)
    return shards


def decode_founding(body: bytes, name: str) -> int:
    """Return the number of shards in a cluster's record.

    :raises ClusterMismatch: if it has another name, a newer version, or cannot be read.
    """
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ClusterMismatch("the record of the cluster cannot be read")
    if fields.get("name") != name:
        raise ClusterMismatch(f"these NATS servers belong to the cluster {fields.get('name')!r}, not to {name!r}")
    version, shards = fields.get("version"), fields.get("shards")
    if version != _VERSION:
        raise ClusterMismatch(f"the cluster {name} was founded by a newer gateway (version {version!r})")
    if type(shards) is not int or not 0 < shards <= 1024:
        raise ClusterMismatch(f"the record of the cluster {name} has {shards!r} shards")
    return shards
