"""The connection of a node to the engine of its cluster: NATS JetStream."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateway.cluster.bus import Bus
from gateway.cluster.errors import ClusterMismatch
from gateway.cluster.metadata import Metadata
from gateway.cluster.queue_log import QueueLogs
from gateway.config.cluster import Cluster
from gateway.kernel.errors import ConfigurationError
from gateway.net.syscalls import send

if TYPE_CHECKING:
    from gateway_jetstream.client.options import ClientOptions

_MONITORING_PORT = 8222

#: How long a start waits for the first connection, in seconds.
_FIRST_CONNECTION_S = 10.0


@dataclass(frozen=True, slots=True)
class Engine:
    """The ports of a cluster, and the call that ends the connection.

    ``unchecked`` returns the servers that did not answer yet.
    """

    metadata: Metadata
    logs: QueueLogs
    bus: Bus
    close: Callable[[], None]
    unchecked: Callable[[], Sequence[str]] = tuple


async def open_engine(
    settings: Cluster,
    node: str,
    reactor: Any,  # Any: Twisted's interfaces are not types
    unfit: Callable[[ClusterMismatch], None],
) -> Engine:
    """Connect to the servers, and check that they keep what they acknowledge.

    A minority that does not answer is checked when it does, if it was once before; ``unfit`` is called with the error
    of such a server that does not fulfil what a cluster needs.

    Logs have a connection of their own: while a new leader reads the whole log, the answer to the renewal of its lease
    would come after megabytes of it, too late.

    :raises ConfigurationError: if a setting cannot be used.
    :raises ClusterError: if the servers do not answer, are not fit for a cluster, or belong to another one.
    """
    from gateway_jetstream.client.client import NatsClient
    from gateway_jetstream.errors import NatsError
    from gateway_jetstream.ports.admission import require_engine
    from gateway_jetstream.ports.foundation import metadata_of, open_cluster
    from gateway_jetstream.ports.server_checks import PendingChecks, remember, require_checked

    client, log_client = (NatsClient(reactor, _options(settings, node), write=send) for _ in range(2))

    def stop() -> None:
        client.stop()
        log_client.stop()

    client.start()
    log_client.start()
    try:
        await client.opened(_FIRST_CONNECTION_S)
        await log_client.opened(_FIRST_CONNECTION_S)
        servers = await require_engine(client, reactor, monitoring_urls(settings))
        if servers.missing:
            await require_checked(metadata_of(client, reactor), servers.missing)
        ports = await open_cluster(client, reactor, settings.name)
        metadata = ports.metadata
        logs = (await open_cluster(log_client, reactor, settings.name)).logs
        await remember(metadata, servers.checked)
    except NatsError as error:
        stop()
        raise ConfigurationError(f"cluster.servers: {error}") from None
    except BaseException:
        stop()
        raise
    pending = PendingChecks(reactor, servers.missing, unfit)

    def close() -> None:
        pending.close()
        stop()

    return Engine(metadata, logs, ports.bus, close, lambda: pending.urls)


def _options(settings: Cluster, node: str) -> "ClientOptions":
    from gateway_jetstream.client.addresses import parse_address
    from gateway_jetstream.client.options import ClientOptions, NatsCredentials, NatsTls

    tls = None
    if settings.ca or settings.certificate:
        tls = NatsTls(settings.ca, settings.certificate, settings.key)
    if settings.credentials is not None:
        credentials = NatsCredentials.of_credentials_file(settings.credentials)
    else:
        credentials = NatsCredentials(
            settings.user, settings.password.get_secret_value(), settings.token.get_secret_value()
        )
    return ClientOptions([parse_address(url) for url in settings.servers], f"gateway {node}", credentials, tls)


def monitoring_urls(settings: Cluster) -> list[str]:
    """Return the monitoring endpoint of each server."""
    if settings.monitoring:
        return list(settings.monitoring)
    hosts = [urlsplit(url).hostname or "" for url in settings.servers]
    return [f"http://{f'[{host}]' if ':' in host else host}:{_MONITORING_PORT}" for host in hosts]


def advertised_host(settings: Cluster) -> str:
    """Return the host at which the other nodes reach this one."""
    return settings.host or socket.gethostname()
