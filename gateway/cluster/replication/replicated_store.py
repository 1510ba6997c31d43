"""A store whose changes are durable once a majority of the engine has them, with a copy on the node's own disk."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gateway.cluster.append_times import AppendLatency
from gateway.cluster.log_replay import LogEnd
from gateway.cluster.log_writer import LogWriter
from gateway.cluster.queue_log import Claim, QueueLogs
from gateway.cluster.replication.checkpoint import Checkpoint
from gateway.cluster.replication.folded_steps import FoldedSteps, InLog
from gateway.cluster.replication.local_store import LocalStore
from gateway.cluster.replication.log_growth import LogGrowth
from gateway.cluster.replication.log_records import STEP
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.cluster.replication.stream_ends import StreamEnds
from gateway.kernel.clock import Clock
from gateway.kernel.journal.changes import Changes, Lsn, Recovered, SetAside, StreamSegment
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.journal.store import StoreListener
from gateway.kernel.messages.stored_message import StoredMessage

if TYPE_CHECKING:
    from pathlib import Path


class ReplicatedStore:
    """A ``Store`` whose steps are records of a log under one claim.

    One record is in flight at a time; the steps of the meantime are folded into the next one. What is not durable in
    the log is not reported. Reads are answered from the ``local`` copy, which also finds what it has not written
    yet. It is built anew from the log at the next start, so it may be written late.

    :param end: where the log ends, from which ``local`` was built.
    :param growth: what it has since its last checkpoint.
    """

    def __init__(
        self,
        local: LocalStore,
        logs: QueueLogs,
        clock: Clock,
        claim: Claim,
        end: LogEnd,
        growth: LogGrowth | None = None,
    ) -> None:
        self.local = local
        self.claim = claim
        self._clock = clock
        self._writer = LogWriter(logs, clock, claim, end, self)
        self._encoder = StepEncoder()
        self._folded = FoldedSteps(InLog(*local.highest_ids()))
        self._sent: deque[tuple[int, Lsn]] = deque()
        self._reported = self._logged = self._appended = self.local_watermark = Lsn(0)
        self._listener: StoreListener | None = None
        self._when_drained: list[Callable[[], None]] = []
        self._checkpoint: Checkpoint | None = None
        self.growth = LogGrowth() if growth is None else growth
        self._has_failed = self._has_set_aside = False
        self._staged_index = end.next_index - 1
        self._stalls: dict[str, str] = {}
        self._streams = StreamEnds()

    def listen(self, listener: StoreListener) -> None:
        """Set the listener. Called once, before the first ``append``."""
        self._listener = listener
        self.local.listen(_LocalReports(self))

    def append(self, changes: Changes) -> Lsn:
        """Stage ``changes`` as one step."""
        self._appended = lsn = self.local.append(changes)
        if rare := self._folded.fold(lsn, changes):
            self._streams.note(lsn, rare)
            self._has_set_aside |= any(isinstance(change, SetAside) for change in rare)
        if not self._sent:
            self._send()
        return lsn

    def _send(self) -> None:
        """Stage what was folded as the next record of the log; nothing, if its net effect is nothing."""
        folded = self._folded
        if self._has_failed or not folded.lsn:
            return
        self._folded = FoldedSteps(folded.in_log())
        for reason in folded.refusals:
            self._clock.call_later(0, partial(self._refused, reason))
        if folded.is_empty:
            self._sent.append((self._staged_index, folded.lsn))
            self._clock.call_later(0, lambda: self.on_durable(self._writer.durable_index))
            return
        payload = STEP + self._encoder.encode(folded.changes())
        self.growth.add(len(payload))
        self._staged_index = self._writer.append(payload, at_once=True)  # a turn has one step: nothing will join it
        self._sent.append((self._staged_index, folded.lsn))
        if self._checkpoint is not None:
            self._checkpoint.note_entities(folded.entity_names)
        self._begin_checkpoint_if_due()

    def announce(self) -> None:
        """Write a step without changes: the copies of other nodes know by it that this leader has begun."""
        if not self._has_failed:
            self._staged_index = self._writer.append(STEP + self._encoder.encode(()))

    # Reads

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage | None]:
        """Return contents of the local copy."""
        return self.local.messages(message_ids)

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Return messages of a stream in the local copy, without those that are not durable in the log yet."""
        data = self.local.stream_chunks(stream_id, offset, most_bytes)
        return None if data is None else self._streams.durable_part(stream_id, offset, data)

    def segment_path(self, stream_id: int, first: int) -> "Path | None":
        """Return the file of a segment in the local copy."""
        return self.local.segment_path(stream_id, first)

    def recover(self) -> Iterator[Recovered]:
        """Yield what the local copy was built with; what that removes by itself is removed from the log too."""
        for each in self._recovered(self.local.recover()):
            assert not isinstance(each, EnqueuedRun)  # the copy yields none
            yield each

    def recover_runs(self) -> Iterator[Recovered | EnqueuedRun]:
        """Yield the same, with messages in runs."""
        return self._recovered(self.local.recover_runs())

    def _recovered(self, changes: Iterator[Recovered | EnqueuedRun]) -> Iterator[Recovered | EnqueuedRun]:
        for change in changes:
            if isinstance(change, StreamSegment):
                self._streams.found(change)
            elif isinstance(change, SetAside):
                self._has_set_aside = True
            yield change
        if self.local.orphans:
            self._staged_index = self._writer.append(STEP + self._encoder.encode(self.local.orphans))

    def record_count(self) -> int:
        """Return about how many changes ``recover`` will yield."""
        return self.local.record_count()

    def highest_ids(self) -> tuple[int, int]:
        """Return the highest position and message id found by recovery."""
        return self.local.highest_ids()

    # For operators

    @property
    def append_latency(self) -> AppendLatency:
        """The time in which a majority stored the records of the last minute."""
        return self._writer.times.latency(self._clock.monotonic_s())

    @property
    def leader_moves(self) -> int:
        """The number of requests to the engine for another leader of the log, each because all appends were slow."""
        return self._writer.leader_moves

    @property
    def stalled(self) -> str | None:
        """The reason why nothing can be written for now; ``None`` while it can."""
        return next(iter(self._stalls.values()), None)

    # The end

    def drain(self, drained: Callable[[], None]) -> None:
        """Call ``drained`` once everything appended is durable in the log, or never will be."""
        if self._is_drained:
            self._clock.call_later(0, drained)
        else:
            self._when_drained.append(drained)

    @property
    def _is_drained(self) -> bool:
        return self._has_failed or self._reported >= self._appended

    def close(self) -> None:
        """Close the log and the local copy. What was not drained is lost here; it may still reach the log."""
        self._writer.close()
        self.local.close()

    # Checkpoints

    def _begin_checkpoint_if_due(self) -> None:
        if self._checkpoint is None and self.growth.is_checkpoint_due:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Begin a checkpoint, unless one is in progress: records before it are removed from the log once it is done.

        While something is set aside in the local copy there is none: the log alone has it.
        """
        if self._checkpoint is None and not self._has_failed and not self._has_set_aside:
            self._checkpoint = Checkpoint(self, self._writer, self._clock, self._checkpoint_done)

    def _checkpoint_done(self, size: int) -> None:
        self._checkpoint = None
        self.growth.end_checkpoint(size)

    @property
    def stream_ends(self) -> dict[int, int]:
        """The next offset of each stream, after all steps."""
        return self._streams.ends

    @property
    def in_log(self) -> InLog:
        """The highest position and message id in the log, after all steps."""
        return self._folded.in_log()

    @property
    def appended(self) -> Lsn:
        """The position of the last step."""
        return self._appended

    def flush(self) -> None:
        """Stage what was folded, even while an earlier record is in flight: a later record must come after it."""
        self._send()

    # Reports of the log

    def on_durable(self, index: int) -> None:
        """Note that a record is in the log, and send the next one."""
        while self._sent and self._sent[0][0] <= index:
            _, self._logged = self._sent.popleft()
        if not self._sent:
            self._send()
        if self._checkpoint is not None:
            self._checkpoint.on_durable(index)
        self._report()

    def _report(self) -> None:
        """Report what is in the log; of streams, once it is in the copy too, because their readers read it there."""
        durable = self._streams.readable(self._logged)
        if durable > self._reported and not self._has_failed:
            self._reported = durable
            self._streams.reported(durable)
            if self._listener is not None:
                self._listener.on_durable(durable)
        self._report_drained()

    def on_deposed(self, reason: str) -> None:
        """Fail: another node owns the data."""
        self.fail(f"another node leads the cluster: {reason}")

    def on_stalled(self, reason: str) -> None:
        """Report that the engine does not answer."""
        self.stall("engine", reason)

    def on_resumed(self) -> None:
        """Report that the engine answers again."""
        self.resume("engine")

    def set_aside(self, aside: SetAside) -> None:
        """Report a record of the copy that cannot be read."""
        self._has_set_aside = True
        if self._listener is not None:
            self._listener.on_set_aside(aside)

    def stall(self, part: str, reason: str) -> None:
        """Report that the engine or the local copy cannot write for now."""
        self._stalls[part] = reason
        if self._listener is not None:
            self._listener.on_stalled(reason)

    def resume(self, part: str) -> None:
        """Report that a part can write again, unless the other one cannot."""
        self._stalls.pop(part, None)
        if self._listener is not None:
            if self._stalls:
                self._listener.on_stalled(next(iter(self._stalls.values())))
            else:
                self._listener.on_resumed()

    def fail(self, reason: str) -> None:
        """Report, once, that nothing more becomes durable."""
        if self._has_failed:
            return
        self._has_failed = True
        self._writer.close()
        if self._listener is not None:
            self._listener.on_failed(reason)
        self._report_drained()

    def _report_drained(self) -> None:
        if self._is_drained:
            calls, self._when_drained = self._when_drained, []
            for call in calls:
                call()

    def _refused(self, reason: str) -> None:
        if self._listener is not None:
            self._listener.on_refused(reason)

    # Reports of the local copy

    def on_local_durable(self, watermark: Lsn) -> None:
        """Note what the copy has written."""
        self.local_watermark = watermark
        self._streams.written(watermark)
        if self._checkpoint is not None:
            self._checkpoint.on_local_durable(watermark)
        self._report()


class _LocalReports:
    """The listener of the local copy: what it cannot write stops the node, since it could not be read back."""

    def __init__(self, store: ReplicatedStore) -> None:
        self._store = store

    def on_durable(self, watermark: Lsn) -> None:
        """Note what the copy has written."""
        self._store.on_local_durable(watermark)

    def on_refused(self, reason: str) -> None:
        """Do nothing: the log refuses the same change."""

    def on_set_aside(self, aside: SetAside) -> None:
        """Report a record of the copy that cannot be read."""
        self._store.set_aside(aside)

    def on_stalled(self, reason: str) -> None:
        """Report that the local disk is full."""
        self._store.stall("local", f"the local copy cannot be written: {reason}")

    def on_resumed(self) -> None:
        """Report that the local disk has room again."""
        self._store.resume("local")

    def on_failed(self, reason: str) -> None:
        """Fail: the copy cannot be written."""
        self._store.fail(f"the local copy failed: {reason}")
