"""Publishing of a batch of the sink at once: prepared in slices, then published as one step of the store.

The preparation decodes and validates all rows. The step of the store that has the messages also records the identity of
the batch, so that a repeated batch is recognised, after a crash too. Larger batches are published by ``BatchRun``.
"""

from collections.abc import Sequence
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.batch_publish import BatchPublish
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Fields
from gateway.management.pipeline.awaiting import Steps, awaited
from gateway.management.pipeline.batches import StagedBatch
from gateway.management.pipeline.published import DUPLICATE, is_published, note_published, require_count
from gateway.management.pipeline.refusals import part_damaged
from gateway.management.pipeline.row_checks import RowChecks
from gateway.management.pipeline.rows import RowReader
from gateway.management.pipeline.staged_files import PartUnusable
from gateway.management.pipeline.staging import Staging

#: Rows prepared in one step: about a millisecond.
_SLICE: Final = 200


class BatchPublisher:
    """Publishes one batch for one request, in one step of the store."""

    def __init__(
        self, call: Call, vhost: VirtualHost, batch: StagedBatch, staging: Staging, producer_memory_ms: int
    ) -> None:
        self._vhost = vhost
        self._journal = call.broker.journal
        self._batch = batch
        self._staging = staging
        self._producer_memory_ms = producer_memory_ms
        self._checks = RowChecks(vhost, call.principal, call.permissions(vhost), call.context.max_message_size)
        self._origin = Origin(f"pipeline {call.peer_host}", 0, call.principal.name, "HTTP")

    def steps(self) -> Steps[Fields]:
        """Publish the batch in steps. :raises HttpError: if nothing of it was published."""
        if is_published(self._vhost, self._batch.identity):
            self._discard()
            return DUPLICATE
        self._staging.keep(self._batch.keys)  # a later run of a job must not replace them now
        try:
            return (yield from self._published())
        finally:
            self._staging.keep(self._batch.keys, is_committed=False)

    def _published(self) -> Steps[Fields]:
        messages = yield from self._prepare()
        if is_published(self._vhost, self._batch.identity):  # the same commit was repeated during the preparation
            return DUPLICATE
        answer = yield from self._publish(messages)
        self._journal.when_durable(self._journal.pending_lsn, self._discard)
        yield None  # end the turn that published
        return answer

    def _prepare(self) -> Steps[list[tuple[Exchange, Message]]]:
        messages: list[tuple[Exchange, Message]] = []
        reader = RowReader(self._batch.defaults)
        work = 0
        for place in self._batch.places():
            try:
                part = yield from awaited(self._staging.read(*place))
            except PartUnusable as error:
                raise part_damaged(error, place.key.name) from None
            for run in reader.runs(part):
                exchange = self._checks.exchange(run)
                messages += [(exchange, message) for message in run.messages()]
                work += len(run)
                if work >= _SLICE:
                    yield None
                    work = 0
        require_count(self._batch, len(messages))
        return messages

    def _publish(self, messages: Sequence[tuple[Exchange, Message]]) -> Steps[Fields]:
        batch, dead_letters = self._batch, None
        if batch.dead_letter_exchange is not None:
            dead_letters = self._checks.writable_exchange(batch.dead_letter_exchange)
        publishing = BatchPublish(
            self._vhost, self._journal, may_drop=batch.may_drop, instead=dead_letters, origin=self._origin
        )
        try:
            done = yield from publishing.steps(messages)
        except PreconditionFailed as refusal:
            raise HttpError(409, "unroutable", str(refusal)) from None
        note_published(self._vhost, batch, self._producer_memory_ms)
        published = done.taken + done.refused
        return {"published": published, "duplicate": False, "dropped": done.unrouted, "refused": done.refused}

    def _discard(self) -> None:
        for key in self._batch.keys:
            self._staging.discard(key)
