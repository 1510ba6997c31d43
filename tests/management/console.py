"""The management site without sockets: requests as bytes to the real site, on an in-memory broker and a fake reactor.

``Console`` is a client of it. Nothing is durable before ``gateway.settle``, which ``ask`` calls.
"""

import json
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h11
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock, Cooperator, deferLater
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from gateway.config.stomp import Stomp
from gateway.management.context import ApiContext
from gateway.management.depths.depth_files import DepthFiles
from gateway.management.depths.depth_record import DepthRecord
from gateway.management.http.cross_origin import CrossOriginPolicy
from gateway.management.http.login_sessions import LoginSessions
from gateway.management.http.site import TaskSteps, management_site
from gateway.management.pipeline.archive_files import ArchiveFiles
from gateway.management.pipeline.batch_runs import BatchRuns
from gateway.management.pipeline.context import PipelineContext
from gateway.management.pipeline.job_results import JobResults
from gateway.management.pipeline.progress import ProgressReports
from gateway.management.pipeline.reading import SplitReader
from gateway.management.pipeline.staged_files import StagedFiles
from gateway.management.pipeline.staging import Staging
from gateway.management.pipeline.staging_threads import InlineThreads
from gateway.management.statistics.sampler import Statistics
from gateway.management.trace_files.trace_files import TraceFiles
from gateway.management.web.factory import HttpFactory
from gateway.management.web.limits import HttpLimits
from gateway.net.clock import slices_on
from gateway.net.origins import OriginRules
from gateway.node.publish_addresses import PublishAddressesOf
from gateway.plugins.services.offering import VhostServices
from gateway_mqtt.handshake.login import LoginRules
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.translation.topics import REVERSIBLE
from tests.management.inline_pool import InlinePool
from tests.management.inline_worker import InlineWorker
from tests.protocols.amqp.dialogue import Gateway

BODY_LIMIT = 64 * 1024
STAGED_LIMIT = 20_000
#: Larger batches are published in slices.
AT_ONCE_SIZE = 10_000
SESSION_S = 600
TRACE_LIMIT = 3000
#: Depths of queues, if they are recorded.
DEPTHS_INTERVAL_S = 10
DEPTHS_AGE_MS = 7 * 86_400_000
DEPTHS_SIZE = 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status, headers by lower-case name, and body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def result(self) -> tuple[int, Any]:
        """The status and the body."""
        return self.status, self.json if self.content else None


class Console:
    """A client of a gateway's API, by default with the user guest.

    With ``ends_turns``, each slice of long work is a separate turn. ``services`` are those of each virtual host. Rows
    of Spark are ``staged`` in that directory, by default in a temporary one. The samples of ``statistics`` record the
    depths of queues in ``depths``; the thread of their files is ``pool``. With ``steps_singly``, each step of long work
    takes a millisecond.
    """

    prefix = "/api"

    def __init__(
        self,
        gateway: Gateway | None = None,
        *,
        ends_turns: bool = False,
        limits: HttpLimits | None = None,
        cross_origin_policy: CrossOriginPolicy | None = None,
        services: VhostServices | None = None,
        traces: Path = Path("traces"),
        results: Path | None = None,
        archive: Path = Path("archive"),
        staged: Path | None = None,
        staged_limit: int = STAGED_LIMIT,
        batch_limit: int | None = None,
        steps_singly: bool = False,
        depths: Path | None = None,
    ) -> None:
        self.archive = archive
        self.results = results
        self._directory = None if staged is not None else TemporaryDirectory()
        self.staged = staged or Path(self._directory.name if self._directory is not None else "")
        self.staged_limit = staged_limit
        self.batch_limit = batch_limit
        self.gateway = gateway or Gateway()
        self.clock = Clock()
        self.slices = single_steps(self.clock) if steps_singly else slices_on(self.clock, time.monotonic)
        self.touch = self.gateway.end_turn if ends_turns else lambda: None
        broker = self.gateway.broker
        broker.directory.put_user(self._administrator())
        self.pool = InlinePool()
        self.depth_files = DepthFiles(
            depths or Path("depths"),
            2000 * DEPTHS_INTERVAL_S,
            DEPTHS_AGE_MS,
            DEPTHS_SIZE,
            lambda call: call(),
            self.pool,
        )
        self.depths = None if depths is None else DepthRecord(self.depth_files, broker.clock, DEPTHS_INTERVAL_S)
        if self.depths is not None:
            broker.events.subscribe(self.depths)
        self.statistics = Statistics(broker, self.clock.seconds, depths=self.depths)
        self.pipeline = self._pipeline()
        self.context = ApiContext(
            broker=broker,
            login=self.gateway.settings.login,
            access_of=self.gateway.settings.access_of,
            statistics=self.statistics,
            topics_of=lambda vhost: REVERSIBLE,
            publish_addresses=self._publish_addresses(),
            pipeline=self.pipeline,
            trace_files=TraceFiles(broker, traces, TRACE_LIMIT),
            depth_files=self.depth_files,
            records_depths=self.depths is not None,
            login_sessions=LoginSessions(broker.directory, broker.clock, SESSION_S),
            touch=self.touch,
            addresses=lambda: {"amqp": ("127.0.0.1", 5672), "management": ("127.0.0.1", 15672)},
            memory_limit=2**30,
            disk_free_limit=50_000_000,
            data=Path.cwd(),
            max_message_size=1000,
            http=limits or HttpLimits(max_body_size=BODY_LIMIT),
            cross_origin_policy=cross_origin_policy or CrossOriginPolicy(OriginRules()),
            reactor=self.clock,
            slices=self.slices,
            services_of=lambda vhost: services or VhostServices(),
        )
        self.site = self._site()

    def _site(self) -> HttpFactory:
        return management_site(self.context)

    def _publish_addresses(self) -> PublishAddressesOf:
        settings = self.gateway.settings
        mqtt = MqttContext(settings.broker, LoginRules(settings.broker, settings.access_of), settings.access_of, str)
        return PublishAddressesOf(mqtt, Stomp)

    def _pipeline(self) -> PipelineContext:
        self.worker = InlineWorker(self.clock)
        broker = self.gateway.broker
        self.staged_files = StagedFiles(self.staged)
        staging = Staging(broker.clock, self.staged_files, InlineThreads(), self.staged_limit, expiry_s=60)
        replaced = staging.restore()
        later = partial(deferLater, self.clock)
        runs = BatchRuns(broker, staging, self._run_steps, later, producer_memory_ms=60_000)
        runs.resume(replaced)
        return PipelineContext(
            SplitReader(self.worker, self.worker, max_reads=2),
            staging,
            runs,
            ProgressReports(),
            JobResults(self.results),
            ArchiveFiles(self.worker, {"directory": str(self.archive)}, b"secret"),
            producer_memory_ms=60_000,
            at_once_size=AT_ONCE_SIZE,
            batch_limit=self.batch_limit,
        )

    def _run_steps(self, steps: Any) -> Any:
        return self.slices.coiterate(iter(TaskSteps(steps, self.touch)))

    def _administrator(self) -> Any:
        guest = self.gateway.broker.directory.user_by_name["guest"]
        return type(guest)(guest.name, guest.password_hash, guest.hashing_algorithm, ["administrator"], {})

    def add_user(self, name: str, *tags: str, vhost: str = "/") -> None:
        """Add a user with its name as password."""
        self.gateway.add_user(name, name, vhost, (".*", ".*", ".*"), *tags)

    def ask(
        self,
        method: str,
        path: str,
        fields: object = None,
        *,
        user: str | None = "guest",
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        peer_host: str = "127.0.0.1",
    ) -> Answer:
        """Send a request and wait for the response. ``path`` is relative to ``/api``; passwords are user names."""
        transport = self.send(method, path, fields, user=user, content=content, headers=headers, peer_host=peer_host)
        for _ in range(200):
            self.clock.advance(0.01)
            self.gateway.settle()
            if is_complete(transport.value(), method):
                break
        return parsed(transport.value(), method)

    def send(
        self,
        method: str,
        path: str,
        fields: object = None,
        *,
        user: str | None = "guest",
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        peer_host: str = "127.0.0.1",
    ) -> Any:  # a StringTransport; Twisted's are not typed
        """Send a request without advancing the clock."""
        body = content if content is not None else b"" if fields is None else json.dumps(fields).encode()
        lines = [f"{method} {self.prefix}{path} HTTP/1.1", "Host: here"]
        if user is not None:
            lines.append(f"Authorization: Basic {b64encode(f'{user}:{user}'.encode()).decode()}")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if "Transfer-Encoding" not in (headers or {}):
            lines.append(f"Content-Length: {len(body)}")
        return self.send_raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body, peer_host)

    def send_raw(self, data: bytes, peer_host: str = "127.0.0.1") -> Any:
        """Send the bytes of a request without advancing the clock."""
        transport: Any = StringTransport(peerAddress=IPv4Address("TCP", peer_host, 50_000))  # type: ignore[no-untyped-call]
        protocol = self.site.buildProtocol(None)
        protocol.makeConnection(transport)
        transport.hang_up = lambda: protocol.connectionLost(Failure(ConnectionDone()))
        protocol.dataReceived(data)
        return transport

    # Short forms

    def get(self, path: str, **options: Any) -> Any:
        answer = self.ask("GET", path, **options)
        assert answer.status == 200, answer
        return answer.json

    def put(self, path: str, fields: object) -> int:
        answer = self.ask("PUT", path, fields)
        assert answer.status in (201, 204), answer
        return answer.status

    def post(self, path: str, fields: object) -> Any:
        answer = self.ask("POST", path, fields)
        assert answer.status in (200, 201, 204), answer
        return answer.json if answer.content else None

    def delete(self, path: str) -> None:
        answer = self.ask("DELETE", path)
        assert answer.status == 204, answer


def single_steps(clock: Clock) -> Cooperator:
    """Return what runs one step of long work in each millisecond."""
    return Cooperator(lambda: lambda: True, partial(clock.callLater, 0.001))


def parsed(received: bytes, method: str = "GET") -> Answer:
    """Parse a response."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "here")]))
    client.send(h11.EndOfMessage())
    client.receive_data(received)
    head: Any = client.next_event()
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    content = b""
    while isinstance(piece := client.next_event(), h11.Data):
        content += bytes(piece.data)
    return Answer(head.status_code, headers, content)


def is_complete(received: bytes, method: str = "GET") -> bool:
    """Return whether a response is complete."""
    head, separator, content = received.partition(b"\r\n\r\n")
    if not separator or method == "HEAD":
        return bool(separator)
    if b"transfer-encoding: chunked" in head.lower():
        return content.endswith(b"0\r\n\r\n")
    size = re.search(rb"content-length: *(\d+)", head.lower())
    return size is None or len(content) >= int(size[1])
