"""Publishing of the rows of a committed batch one after the other, with the position after each."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.errors import AccessRefused
from gateway.kernel.journal.batches import CommittedBatch
from gateway.kernel.journal.journal import Journal
from gateway.kernel.journal.records.batches import BatchPositionRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import MOST_QUEUES, Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.vhosts.run_publishing import RunPublishing
from gateway.kernel.vhosts.verdict import REFUSED, TAKEN, UNROUTED, Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.pipeline.batches import StagedBatch
from gateway.management.pipeline.refusals import unroutable
from gateway.management.pipeline.rows import RowRun

#: A turn ends after this time, in seconds, or this work: a row of a run is 1, one that is published by itself is 4.
#: The code around it takes 0.2 ms a turn, so it has as many rows as other clients permit, who wait for its end.
_TURN_S: Final = 0.001
_MOST_WORK: Final = 512
_BY_ITSELF: Final = 4

#: Bytes of bodies of one turn, unless one row has more: they are one step of the store.
_MOST_BYTES: Final = 512 * 1024


class Held(Exception):
    """A committed batch cannot be published for now. The text is the reason."""


class BatchRows:
    """Publishes the rows of one batch.

    Rows and the position after them are part of one turn, so a crash separates neither. The position is that of
    ``batch``, the counts of this object run ahead of it within a turn.
    """

    def __init__(
        self, vhost: VirtualHost, journal: Journal, batch: CommittedBatch, staged: StagedBatch, origin: Origin
    ) -> None:
        self._vhost = vhost
        self._journal = journal
        self._batch = batch
        self._staged = staged
        self._origin = origin
        self._runs = RunPublishing(vhost, origin)
        position = batch.position
        self._part, self._row = position.part, position.row
        self._published, self._dropped, self._refused = position.published, position.dropped, position.refused

    @property
    def skipped(self) -> int:
        """The number of rows of the part at hand that are published already."""
        return self._row

    def steps(self, runs: Iterator[RowRun]) -> Iterator[None]:
        """Return the steps that publish the rest of a part. :raises Held: before the row that cannot be published."""
        now_s = self._journal.clock.monotonic_s
        work, size, ends_s = 0, 0, now_s() + _TURN_S
        try:
            for run in runs:
                if work and (work + len(run) > _MOST_WORK or size + run.size > _MOST_BYTES or now_s() >= ends_s):
                    self._advance()
                    yield
                    work, size, ends_s = 0, 0, now_s() + _TURN_S
                messages, size = run.messages(), size + run.size
                if self._runs.publish(messages):
                    work += len(messages)
                    self._row += len(messages)
                    self._published += len(messages)
                    continue
                work += _BY_ITSELF * len(messages)
                for published in messages:
                    message = self._intercepted(published)
                    found = self._found(message)
                    if isinstance(found, Walk) or len(found.queues) > MOST_QUEUES:
                        self._advance()
                        yield from self._publish_wide(found, message)
                    else:
                        self._publish(found, message)
        except Exception:  # it is tried again, but not with what is published
            self._advance()
            raise
        self._part, self._row = self._part + 1, 0
        self._advance()

    def _intercepted(self, message: Message) -> Message:
        try:
            return self._vhost.interception.published(message, self._origin)
        except AccessRefused as refusal:
            raise Held(str(refusal)) from None

    def _found(self, message: Message) -> Route | Walk:
        """Return the route of a message, or that of the message as a dead letter."""
        found = self._route_in(message.exchange, message)
        dead_letters = self._staged.dead_letter_exchange
        if isinstance(found, Route) and not found.queues and dead_letters is not None:
            found = self._route_in(dead_letters, message)
        return found

    def _route_in(self, name: str, message: Message) -> Route | Walk:
        exchange = self._vhost.exchange_by_name.get(name)
        if exchange is None:
            raise Held(f"no exchange '{name}' in vhost '{self._vhost.name}'")
        if exchange.inert_reason:
            raise Held(f"exchange '{name}' in vhost '{self._vhost.name}' is inert: {exchange.inert_reason}")
        return self._vhost.find_route(exchange, message)

    def _publish(self, route: Route, message: Message) -> None:
        """Publish a message in this turn."""
        self._require_routable(route, message)
        self._note(self._vhost.publish_to_route(route, message, self._origin))

    def _publish_wide(self, found: Route | Walk, message: Message) -> Iterator[None]:
        """Return the steps that publish a message to very many queues, as one step of the store with the position."""
        if isinstance(found, Walk):
            yield from self._vhost.walking(found)
            assert found.route is not None
            found = found.route
        if len(found.queues) <= MOST_QUEUES:
            self._publish(found, message)
            self._advance()
            return
        step = self._journal.open_step()
        try:
            fanout = self._vhost.wide_publishing.fanout_of(found, message, self._origin)
            yield from fanout.offers(step)
            self._journal.enter(step)
            try:
                fanout.finish()
                self._note(REFUSED if fanout.is_refused else TAKEN)
                self._advance()
            finally:
                self._journal.leave()
        finally:
            self._journal.close_step(step)

    def _require_routable(self, route: Route, message: Message) -> None:
        if not route.queues and not self._staged.may_drop:
            self._vhost.deduplication_caches.refused(message)  # it is published later
            raise Held(unroutable(message.exchange, message.routing_key))

    def _note(self, verdict: Verdict) -> None:
        self._row += 1
        if verdict is UNROUTED:
            self._dropped += 1
            return
        self._published += 1
        if verdict is REFUSED:
            self._refused += 1

    def _advance(self) -> None:
        """Record the position after the last row, in this turn."""
        record = self._batch.record
        position = BatchPositionRecord(
            record.vhost,
            record.name,
            self._part,
            self._row,
            published=self._published,
            dropped=self._dropped,
            refused=self._refused,
        )
        if position != self._batch.position:
            self._vhost.batches.advance(position)
