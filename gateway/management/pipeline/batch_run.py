"""A batch that is published in slices: checked, committed by a record, then published from its staged rows.

The record is the one moment at which the batch is committed: before it nothing is published, after it everything will
be. What prevents a row from being published then *holds* the batch, with a reason; it continues once that is over.
"""

from enum import Enum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred

from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.batches import CommittedBatch
from gateway.kernel.messages.origin import Origin
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Fields
from gateway.management.pipeline.awaiting import Steps, awaited
from gateway.management.pipeline.batch_check import BatchCheck
from gateway.management.pipeline.batch_rows import BatchRows, Held
from gateway.management.pipeline.batches import PartPlace, StagedBatch, with_following
from gateway.management.pipeline.published import DUPLICATE, is_published, note_published
from gateway.management.pipeline.refusals import not_found, part_damaged
from gateway.management.pipeline.row_checks import RowChecks
from gateway.management.pipeline.rows import RowReader
from gateway.management.pipeline.staged_files import PartUnusable
from gateway.management.pipeline.staging import Staging
from gateway.management.pipeline.unwritten import Unwritten

if TYPE_CHECKING:
    from collections.abc import Callable

_log: Final = StructuredLog("pipeline")

#: The time between two checks whether a held batch may continue, in seconds.
HELD_S: Final = 0.5


class RunState(Enum):
    """The state of a batch. A batch that is ``CHECKED`` is not committed yet; a ``HELD`` one waits for a reason."""

    CHECKED = "checked"
    PUBLISHED = "publishing"
    HELD = "held"


class BatchEnded(Exception):
    """The batch was removed: with its virtual host, or by an operator."""


class BatchStopped(Exception):
    """The broker stops; the batch continues with its next start."""


class BatchRun:
    """One batch, from its check to its last message.

    ``outcome`` is the answer to its commit, or why nothing of it was published; ``None`` until then. ``later`` returns
    a deferred that is called back after some seconds. ``batch`` is set once it is committed. ``is_stopped`` ends it
    before its next rows.
    """

    def __init__(
        self,
        broker: Broker,
        vhost: VirtualHost,
        staged: StagedBatch,
        staging: Staging,
        later: "Callable[[float], Deferred[None]]",
        producer_memory_ms: int,
    ) -> None:
        self._broker = broker
        self._vhost = vhost
        self._staging = staging
        self._later = later
        self._producer_memory_ms = producer_memory_ms
        self._origin = Origin(f"pipeline batch {staged.name}", 0, staged.user, "HTTP")
        self._check: BatchCheck | None = None
        self._readings: dict[PartPlace, Deferred[bytes]] = {}  # those that have begun before they are needed
        self.staged = staged
        self.name = staged.name
        self.batch: CommittedBatch | None = vhost.batches.get(self.name)
        self.state = RunState.CHECKED if self.batch is None else RunState.PUBLISHED
        self.reason = ""
        self.is_stopped = False
        self.outcome: Fields | HttpError | None = None

    @property
    def vhost_name(self) -> str:
        """The name of its virtual host."""
        return self._vhost.name

    @property
    def rows_left(self) -> int:
        """The number of its rows that are not published yet, if it is committed."""
        if self.batch is None:
            return 0
        position = self.batch.position
        return self.batch.record.rows - position.published - position.dropped

    @property
    def view(self) -> Fields:
        """The state, for clients and operators."""
        position = None if self.batch is None else self.batch.position
        identity = self.staged.identity
        return {
            "name": self.name,
            "vhost": self._vhost.name,
            "user": self.staged.user,
            "producer": None if identity is None else identity.producer,
            "query": None if identity is None else identity.query,
            "batch": None if identity is None else identity.batch,
            "state": self.state.value,
            "reason": self.reason,
            "rows": self.staged.rows,
            "checked": self.staged.rows if self._check is None else self._check.checked,
            "published": 0 if position is None else position.published,
            "dropped": 0 if position is None else position.dropped,
            "refused": 0 if position is None else position.refused,
            "committed_at": None if self.batch is None else self.batch.record.committed_at_ms,
        }

    # Before the commit

    def committing(self, checks: RowChecks) -> Steps[None]:
        """Return the steps that check, commit and publish the batch."""
        self._staging.keep(self.staged.keys)
        self._check = BatchCheck(self._vhost, self.staged, checks, self._read_unchecked)
        try:
            yield from self._check.steps()
            if self.is_stopped:
                return
            if is_published(self._vhost, self.staged.identity):
                self._end(DUPLICATE)
                return
            if self._broker.vhost_by_name.get(self._vhost.name) is not self._vhost:
                raise not_found(f"vhost '{self._vhost.name}' was deleted")
        except HttpError as refusal:
            self._forget_readings()
            self._staging.keep(self.staged.keys, is_committed=False)
            self.outcome = refusal
            return
        self.batch = self._vhost.batches.commit(self.staged.record(self._broker.journal.now_ms))
        yield None
        yield from self.publishing()

    def _read_unchecked(self, place: PartPlace, following: PartPlace | None) -> Steps[bytes]:
        try:
            return (yield from self._content(place, following))
        except PartUnusable as error:
            raise part_damaged(error, place.key.name) from None

    # After the commit

    def publishing(self) -> Steps[None]:
        """Return the steps that publish the rest of a committed batch; those of a removed one end early."""
        assert self.batch is not None
        rows = BatchRows(self._vhost, self._broker.journal, self.batch, self.staged, self._origin)
        unwritten = Unwritten(self._broker.journal)
        places = self.staged.places()
        for published in islice(places, self.batch.position.part):  # a crash may have left their files
            self._staging.discard_part(*published)
            yield None
        try:
            for place, following in with_following(places):
                yield from self._publish_part(rows, unwritten, place, following)
                self._discard_when_durable(place)
        except BatchStopped:
            return
        except BatchEnded:
            self._end({**DUPLICATE, "discarded": True})
            return
        self._finish()
        yield None

    def _publish_part(
        self, rows: BatchRows, unwritten: Unwritten, place: PartPlace, following: PartPlace | None
    ) -> Steps[None]:
        """Return the steps that publish the rest of a part, which is read again after each hold."""
        while True:
            try:
                content = yield from self._content(place, following)
                for _ in rows.steps(RowReader(self.staged.defaults).runs(content, rows.skipped)):
                    yield unwritten.add()
                    self._require_present()
                    while reason := self._obstacle():
                        yield from self._hold(reason)
                    self.state, self.reason = RunState.PUBLISHED, ""
                return
            except (Held, PartUnusable, HttpError) as obstacle:
                yield from self._hold(str(getattr(obstacle, "reason", obstacle)))

    def _content(self, place: PartPlace, following: PartPlace | None) -> Steps[bytes]:
        """Return the steps that read a part, and begin to read the one after it."""
        reading = self._readings.pop(place, None) or self._staging.read(*place)
        content = yield from awaited(reading)
        if following is not None and following not in self._readings:
            self._readings[following] = self._staging.read(*following)
        return content

    def _forget_readings(self) -> None:
        """Ignore the parts that are read in advance, and why one of them may not be readable."""
        for reading in self._readings.values():
            reading.addErrback(lambda _: None)
        self._readings.clear()

    def _obstacle(self) -> str:
        """Return why nothing may be published now; empty if it may."""
        if self._broker.alarms:
            return f"publishers are blocked: {self._broker.alarms.reason}"
        if self._origin.connection in self._broker.archive_context.blocked_publishers:
            return "an archive that it publishes to is full"
        return ""

    def _hold(self, reason: str) -> Steps[None]:
        """Return the steps of a pause, after which the batch tries again."""
        if reason != self.reason:
            _log.warning("a committed batch is held", vhost=self._vhost.name, batch=self.name, reason=reason)
        self.state, self.reason = RunState.HELD, reason
        yield self._later(HELD_S)
        self._require_present()

    def abandon(self) -> None:
        """Remove the committed batch: the rest of its rows is not published, and a repeated commit is a duplicate."""
        note_published(self._vhost, self.staged, self._producer_memory_ms)
        self._vhost.batches.finish(self.name)

    def _require_present(self) -> None:
        """Check that the batch goes on. :raises BatchStopped: if the broker stops. :raises BatchEnded: otherwise."""
        if self.is_stopped:
            raise BatchStopped
        if self._vhost.batches.get(self.name) is not self.batch:
            raise BatchEnded

    def _finish(self) -> None:
        """Record the end of the batch in the turn of its last messages; its staged rows are deleted after that."""
        assert self.batch is not None
        position = self.batch.position
        note_published(self._vhost, self.staged, self._producer_memory_ms)
        self._vhost.batches.finish(self.name)
        counts = {"dropped": position.dropped, "refused": position.refused}
        self._end({"published": position.published, "duplicate": False, **counts})

    def _end(self, outcome: Fields) -> None:
        self.outcome = outcome
        journal = self._broker.journal
        journal.when_durable(journal.pending_lsn, self._discard_all)

    def _discard_when_durable(self, place: PartPlace) -> None:
        """Delete a part once its messages are durable."""
        journal = self._broker.journal
        journal.when_durable(journal.pending_lsn, partial(self._staging.discard_part, *place))

    def _discard_all(self) -> None:
        self._staging.keep(self.staged.keys, is_committed=False)
        self._staging.discard_all(self.staged.keys)
