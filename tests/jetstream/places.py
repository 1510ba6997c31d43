"""The engine on NATS JetStream, as a place for the contracts of the ports."""

from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, TypeVar

from gateway.cluster.queue_log import QueueId
from gateway.net.clock import ReactorClock
from gateway_jetstream.client.addresses import parse_address
from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.client.options import ClientOptions, NatsCredentials, NatsTls
from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.publishing import StreamPublisher
from gateway_jetstream.ports.bus import JetStreamBus
from gateway_jetstream.ports.foundation import JetStreamCluster, open_cluster
from gateway_jetstream.ports.metadata import JetStreamMetadata
from gateway_jetstream.ports.queue_logs import JetStreamQueueLogs
from tests.jetstream.event_loop import EventLoop
from tests.jetstream.nats_servers import NatsServers

T = TypeVar("T")

#: Numbers of queues and names, which no two places share.
_NUMBERS = count(1)


class JetStreamPlace:
    """Nodes of one cluster, each with a client of its own. Owns the clients; the servers run on."""

    def __init__(self, servers: NatsServers, *, name: str = "test", prefix: str = "gateway", shards: int = 2) -> None:
        self.servers = servers
        self.loop = EventLoop()
        self.clock = ReactorClock(self.loop.reactor, lambda: None)
        self.clients: list[NatsClient] = []
        self._name = name
        self._prefix = prefix
        self._shards = shards

    def client(
        self, *, only: int | None = None, credentials: NatsCredentials | None = None, tls: NatsTls | None = None
    ) -> NatsClient:
        """Return a new client that is connected; ``only`` chooses its server."""
        urls = self.servers.urls if only is None else [self.servers.urls[only]]
        options = ClientOptions(
            [parse_address(url) for url in urls], credentials=credentials or NatsCredentials(), tls=tls
        )
        client = NatsClient(self.loop.reactor, options)
        self.clients.append(client)
        client.start()
        self.loop.run(client.opened(20.0))
        return client

    def cluster(self, client: NatsClient | None = None, publish: StreamPublisher | None = None) -> JetStreamCluster:
        """Return the ports of another node."""
        opening = open_cluster(
            client or self.client(),
            self.loop.reactor,
            self._name,
            shards=self._shards,
            prefix=self._prefix,
            publish=publish,
        )
        return self.loop.run(opening)

    def leader_of(self, stream: str) -> str:
        """Return the name of the server that leads a stream, once there is one."""
        found = ""

        def is_known() -> bool:
            nonlocal found
            try:
                found = self.loop.run(JetStreamApi(self.client()).stream(stream)).leader
            except NatsError:
                return False
            return bool(found)

        self.loop.until(is_known)
        return found

    def metadata(self) -> JetStreamMetadata:
        """Return the metadata of another node."""
        return self.cluster().metadata

    def logs(self) -> JetStreamQueueLogs:
        """Return the logs of another node."""
        return self.cluster().logs

    def bus(self) -> JetStreamBus:
        """Return the bus of another node."""
        return self.cluster().bus

    def new_queue(self) -> QueueId:
        """Return a new number."""
        return QueueId(next(_NUMBERS))

    def new_name(self) -> str:
        """Return a new text."""
        return f"name-{next(_NUMBERS)}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine."""
        return self.loop.run(work)

    def until(self, condition: Callable[[], object]) -> None:
        """Work until a condition is true."""
        self.loop.until(condition)

    def close(self) -> None:
        """Stop the clients."""
        for client in self.clients:
            client.stop()
        self.loop.close()
