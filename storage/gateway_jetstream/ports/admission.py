"""The conditions for an engine before a node may start with it; each refusal is one line."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import Agent, ResponseDone

from gateway.cluster.errors import ClusterMismatch
from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.ports.layout import REPLICAS

#: The oldest version that passed the tests of this engine; before it, acknowledged records could be lost.
OLDEST: Final = (2, 12, 8)

#: What a batch and its headers need of ``max_payload``.
_LEAST_PAYLOAD: Final = 512 * 1024

#: The time limit of an answer of the monitoring endpoint, in seconds, and the size of the largest, in bytes.
_TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 4 * 1024 * 1024


class ServerUnreachable(ClusterMismatch):
    """A server, known by its monitoring URL, does not answer."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(reason)
        self.url = url


class MonitoringBody(Protocol):
    """Collects the body of an answer, up to a limit."""

    def __init__(self) -> None:
        self.whole: Deferred[bytes] = Deferred()
        self._parts: list[bytes] = []
        self._size = 0

    def dataReceived(self, data: bytes) -> None:
        """Keep a part; what exceeds the limit is not kept."""
        self._size += len(data)
        if self._size <= _MOST_BYTES:
            self._parts.append(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Return the whole, or the error."""
        if self.whole.called:
            return
        if self._size > _MOST_BYTES:
            self.whole.errback(ValueError(f"the answer has more than {_MOST_BYTES} bytes"))
        elif reason is None or isinstance(reason.value, ResponseDone):
            self.whole.callback(b"".join(self._parts))
        else:
            self.whole.errback(reason)


@dataclass(frozen=True, slots=True)
class CheckedServers:
    """The servers that were checked, monitoring URL to name, and those that do not answer."""

    checked: Mapping[str, str]
    missing: Sequence[ServerUnreachable]


async def require_engine(
    client: NatsClient,
    reactor: Any,  # Any: as elsewhere
    monitoring: Sequence[str],
) -> CheckedServers:
    """Check each server: by its connection, or by its monitoring endpoint, such as ``http://10.0.0.1:8222``.

    A minority may not answer: that is reported.

    :raises ClusterMismatch: if one is too old, too small, acknowledges before it has written, or has too few peers.
    """
    require_version(client.info.version, client.server)
    if client.info.most_payload < _LEAST_PAYLOAD:
        raise ClusterMismatch(
            f"{client.server} takes messages of up to {client.info.most_payload} bytes; max_payload must be at least "
            f"{_LEAST_PAYLOAD}"
        )
    if len(monitoring) < REPLICAS:
        raise ClusterMismatch(
            f"the monitoring endpoints of {len(monitoring)} NATS servers are known; a cluster has at least {REPLICAS}"
        )
    checked: dict[str, str] = {}
    missing: list[ServerUnreachable] = []
    for url in monitoring:
        try:
            checked[url] = await check_server(reactor, url)
        except ServerUnreachable as error:
            missing.append(error)
    if missing and 2 * len(missing) >= len(monitoring):
        raise missing[0]
    return CheckedServers(checked, missing)


async def check_server(reactor: Any, url: str) -> str:  # Any: as elsewhere
    """Check a server by its monitoring endpoint; return its name.

    :raises ServerUnreachable: if it does not answer.
    :raises ClusterMismatch: if it is not fit.
    """
    server = await _fetched(reactor, url, "/varz")
    require_version(text_field(server, "version"), url)
    require_jetstream(await _fetched(reactor, url, "/jsz?config=true"), url)
    return text_field(server, "server_name")


def require_version(version: str, server: str) -> None:
    """Check a version such as ``2.15.1``. :raises ClusterMismatch: if it is too old, or none."""
    found = re.match(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})", version, re.ASCII)
    if found is None:
        raise ClusterMismatch(f"{server} does not say its version: {version[:40]!r}")
    if tuple(int(part) for part in found.groups()) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise ClusterMismatch(f"{server} is nats-server {version[:40]}; the oldest version for a cluster is {oldest}")


def require_jetstream(fields: dict[str, Any], server: str) -> None:  # Any: values of JSON
    """Check the answer of ``/jsz?config=true``. :raises ClusterMismatch: if JetStream is off, unsafe or too small."""
    config = fields.get("config")
    if fields.get("disabled") is True or not isinstance(config, dict):
        raise ClusterMismatch(f"{server} has no JetStream; its configuration needs jetstream {{ store_dir: ... }}")
    if config.get("sync_always") is not True:
        raise ClusterMismatch(
            f"{server} acknowledges messages before they are on disk; its configuration needs "
            "jetstream { sync_interval: always }"
        )
    cluster = fields.get("meta_cluster")
    size = cluster.get("cluster_size") if isinstance(cluster, dict) else 1
    if type(size) is not int or size < REPLICAS:
        raise ClusterMismatch(f"{server} is in a NATS cluster of {size}; at least {REPLICAS} servers are needed")


def decode_monitoring(body: bytes, url: str) -> dict[str, Any]:
    """Return the JSON of a monitoring endpoint. :raises ClusterMismatch: if it is none."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ClusterMismatch(f"{url} is no monitoring endpoint of a nats-server")
    return fields


def text_field(fields: dict[str, Any], name: str) -> str:
    """Return a text; empty if it is missing."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


async def _fetched(reactor: Any, base: str, path: str) -> dict[str, Any]:
    url = base.rstrip("/") + path
    try:
        agent = Agent(reactor, connectTimeout=_TIMEOUT_S)  # type: ignore[no-untyped-call]  # Twisted's
        asking: Deferred[Any] = agent.request(b"GET", url.encode())
        asking.addTimeout(_TIMEOUT_S, reactor)
        answer = await asking
        collecting = MonitoringBody()
        answer.deliverBody(collecting)
        collecting.whole.addTimeout(_TIMEOUT_S, reactor)
        body = await collecting.whole
    except Exception as error:  # Twisted's errors have no common base
        raise ServerUnreachable(base, f"{url} cannot be read: {str(error) or type(error).__name__}") from None
    return decode_monitoring(body, url)
