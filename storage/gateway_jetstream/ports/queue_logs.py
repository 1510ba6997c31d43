"""Logs of queues on JetStream: subjects of shard streams, each append fenced by the owner's record."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from gateway.cluster.errors import Unanswered
from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import (
    BEGINNING,
    AppendAnswer,
    Claim,
    Epoch,
    LogFollower,
    Position,
    QueueId,
    StoredBatch,
)
from gateway_jetstream.errors import MessageNotFound, NatsError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.publishing import StreamPublisher
from gateway_jetstream.jetstream.stream_message import (
    StreamMessage,
    decode_stored,
    direct_get,
    last_of_subject,
)
from gateway_jetstream.ports.copies import Copies
from gateway_jetstream.ports.layout import Layout
from gateway_jetstream.ports.leading import lead_from
from gateway_jetstream.ports.log_appends import LogAppends
from gateway_jetstream.ports.log_following import LogFollow
from gateway_jetstream.ports.log_reading import LogReader
from gateway_jetstream.ports.placing import create_stream
from gateway_jetstream.ports.writes import ComparedWriter

_log: Final = Logger()

_MOST_BATCH_BYTES: Final = 256 * 1024


class JetStreamQueueLogs:
    """The logs of a cluster's queues."""

    def __init__(
        self,
        api: JetStreamApi,
        publisher: StreamPublisher,
        reactor: Any,  # Any: Twisted's interfaces are not types
        layout: Layout,
        copies: Copies | None = None,
    ) -> None:
        self.most_batch_bytes = _MOST_BATCH_BYTES
        self._api = api
        self._reactor = reactor
        self._layout = layout
        self._writer = ComparedWriter(api, publisher, reactor)
        self._appends = LogAppends(publisher, layout, reactor)
        self._copies = copies or Copies(api, reactor)

    async def create(self) -> None:
        """Create the shard streams, unless they are there. :raises NatsError: if that is refused."""
        for config in self._layout.shard_streams():
            await create_stream(self._api, self._reactor, config)

    async def owner(self, queue: QueueId) -> Claim | None:
        """Return the last claim, as the leader has it."""
        found = await self._last(queue, self._layout.owner_subject(queue))
        return None if found is None else Claim(queue, decode_node(found.payload), Epoch(found.sequence))

    async def claim(self, queue: QueueId, node: str, expected: Epoch) -> Claim:
        """Claim a queue by compare-and-set. :raises Outdated: if the last epoch is not the expected one."""
        subject, stream = self._layout.owner_subject(queue), self._layout.stream(queue)
        body = json.dumps({"node": node}).encode()
        sequence = await self._writer.write(stream, subject, body, expected, {})
        self._start(self._api.purge(stream, subject, keep=1))  # former claims, which decide nothing any more
        return Claim(queue, node, Epoch(sequence))

    def append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        """Append a batch, unless there is a later claim."""
        self._appends.send(claim, number, data, answered)

    async def last(self, claim: Claim) -> StoredBatch | None:
        """Return the last batch of a log, as the leader has it."""
        found = await self._last(claim.queue, self._layout.log_subject(claim.queue))
        return None if found is None else StoredBatch(Position(found.sequence), found.payload)

    async def read(
        self,
        claim: Claim,
        take: Callable[[StoredBatch], None],
        after: Position = BEGINNING,
        gate: Gate | None = None,
    ) -> None:
        """Read a follower's copy up to the record of the claim: it has everything before."""
        stream = self._layout.stream(claim.queue)
        own, log = self._layout.owner_subject(claim.queue), self._layout.log_subject(claim.queue)
        try:
            accepts = await self._copies.wished(stream, claim.queue)
        except NatsError as error:
            raise Unanswered(str(error)) from None
        shuns = partial(self._copies.is_avoided, claim.queue)
        reader = LogReader(
            self._api, self._reactor, stream, own, log, claim, take, accepts, shuns, after, gate or Gate()
        )
        try:
            await reader.finished()
        finally:
            self._copies.note_read(claim.queue, reader.source)

    def follow(
        self, queue: QueueId, follower: LogFollower, after: Position = BEGINNING, gate: Gate | None = None
    ) -> LogFollow:
        """Read any copy that is not avoided, from a position on, and go on."""
        stream, log = self._layout.stream(queue), self._layout.log_subject(queue)
        copies = self._copies
        return LogFollow(
            self._api,
            self._reactor,
            stream,
            log,
            follower,
            after,
            gate or Gate(),
            shuns=partial(copies.is_avoided, queue),
            avoid=partial(copies.avoid, queue),
        )

    async def read_elsewhere(self, claim: Claim) -> None:
        """Move the stream's leader, and avoid the copy that was read last."""
        try:
            await self._copies.move_leader(self._layout.stream(claim.queue), claim.queue)
        except NatsError as error:
            raise Unanswered(str(error)) from None

    def move_leader(self, claim: Claim) -> None:
        """Ask the leader of the log's stream to step down. A failure is logged."""
        stream = self._layout.stream(claim.queue)
        _log.warn("all appends to {stream} are slow: its leader is asked to step down", stream=stream)
        self._start(self._api.step_down(stream))

    async def draw_near(self, claim: Claim) -> None:
        """Let the connected server lead the log's stream: an append to another one takes a hop more, there and back."""
        try:
            server = self._api.client.info.name
            if self._copies.is_avoided(claim.queue, server):
                return  # its copy has a gap
            await lead_from(self._api, self._reactor, self._layout.stream(claim.queue), server)
        except NatsError as error:
            _log.info("the log is led by another server: {reason}", reason=str(error))

    async def fetch(self, queue: QueueId, position: Position) -> bytes | None:
        """Return the batch at a position, from any copy, or from the leader if that one does not have it."""
        stream = self._layout.stream(queue)
        try:
            try:
                found = await direct_get(self._api, stream, position)
            except MessageNotFound:
                answer = await self._api.call(f"STREAM.MSG.GET.{stream}", {"seq": position})
                found = decode_stored(answer.get("message"))
        except MessageNotFound:
            return None
        except NatsError as error:
            raise Unanswered(str(error)) from None
        return found.payload if found.subject == self._layout.log_subject(queue) else None

    def purge(self, claim: Claim, below: Position) -> None:
        """Remove the batches below a position. A failure is logged: the next purge covers it."""
        self._start(
            self._api.purge(self._layout.stream(claim.queue), self._layout.log_subject(claim.queue), below=below)
        )

    async def _last(self, queue: QueueId, subject: str) -> StreamMessage | None:
        try:
            return await last_of_subject(self._api, self._layout.stream(queue), subject)
        except NatsError as error:
            raise Unanswered(str(error)) from None

    def _start(self, work: Any) -> None:  # Any: a coroutine, whose result does not matter
        Deferred.fromCoroutine(work).addErrback(_note)


def decode_node(body: bytes) -> str:
    """Return the node in a claim; empty if it cannot be read: a claim counts by its sequence alone."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(fields.get("node", "")) if isinstance(fields, dict) else ""


def _note(failure: Failure) -> None:
    """Log why a purge or a step-down failed."""
    if not isinstance(failure.value, NatsError):
        failure.raiseException()
    _log.info("JetStream refuses a request: {reason}", reason=str(failure.value))
