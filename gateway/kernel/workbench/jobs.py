"""Jobs of the workbench: an action on all messages that a search finds, in slices."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final

from gateway.kernel.workbench.actions import Action, Outcome
from gateway.kernel.workbench.filters import MessageFilter
from gateway.kernel.workbench.found import Found

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.workbench.removed import MovedMessage, RemovedMessages

#: Messages that are examined, and those that an action is applied to, between two points where other work may run.
_EXAMINED_AT_ONCE: Final = 64
_APPLIED_AT_ONCE: Final = 8

#: Bytes of bodies that are examined between two such points.
_BYTES_AT_ONCE: Final = 2**18

#: Found messages of which a job keeps a copy.
SAMPLE: Final = 10

#: Different reasons of refusals that a job keeps.
_MOST_REASONS: Final = 10


class JobState(Enum):
    """The state of a job. ``STOPPED``: it reached a limit before the end; ``FAILED``: an error ended it."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    FAILED = "failed"


class JobCounts:
    """Numbers of messages: examined of ``total``, found by the filter, and by outcome; ``bytes`` of found bodies."""

    __slots__ = ("bytes", "done", "examined", "found", "gone", "refused", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.examined = self.found = self.bytes = 0
        self.done = self.gone = self.refused = 0


class Job:
    """One action on one queue. ``removed`` has the messages that undo it; ``None`` if it cannot be undone.

    A job without an ``action`` is a dry run: it counts, and keeps a ``sample``. ``limit`` is the number of messages
    after which the job ends, 0 for none. ``room`` returns why no further message can be kept, empty if one can.
    ``on_end`` is called once, in the turn of the last change.
    """

    def __init__(
        self,
        number: int,
        name: str,
        user: str,
        queue: "QueueLike",
        started_at_ms: int,
        *,
        found: Iterator[Found | None],
        total: int,
        wanted: MessageFilter,
        action: Action | None,
        removed: "RemovedMessages | None" = None,
        limit: int = 0,
        room: Callable[[], str] = lambda: "",
    ) -> None:
        self.number = number
        self.name = name
        self.user = user
        self.queue = queue
        self.started_at_ms = started_at_ms
        self.ended_at_ms = 0
        self.state = JobState.RUNNING
        self.reason = ""
        self.reasons: dict[str, int] = {}
        self.counts = JobCounts(total)
        self.sample: list[Found] = []
        self.removed = removed
        self.is_dry = action is None
        self._found = found
        self._wanted = wanted
        self._action = action
        self._limit = limit
        self._room = room
        self._is_cancelled = False
        self._on_end: list[Callable[[], None]] = []

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call ``call`` once the job has ended; now if it has."""
        if self.state is JobState.RUNNING:
            self._on_end.append(call)
        else:
            call()

    def cancel(self) -> None:
        """End the job before its next message; its effects so far stay, and can be undone."""
        self._is_cancelled = True

    def steps(self, now_ms: Callable[[], int]) -> Iterator[None]:
        """Run the job. After an exception it has failed; its effects so far stay."""
        state = JobState.FAILED
        try:
            yield from self._apply_to_all()
            state = JobState.CANCELLED if self._is_cancelled else JobState.STOPPED if self.reason else JobState.DONE
        except Exception as error:
            self.reason = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._flush()
            self.ended_at_ms = now_ms()
            self.state = state
            calls, self._on_end = self._on_end, []
            for call in calls:
                call()

    def _apply_to_all(self) -> Iterator[None]:
        work = size = 0
        for found in self._found:
            if self._is_cancelled or self.queue.is_deleted:
                return
            if found is not None:
                self.counts.examined += 1
                size += len(found.entry.message.body)
                if not self._wanted.takes(found.entry.message):
                    work += 1
                elif self.reason or not self._take(found):
                    return
                else:
                    work += _EXAMINED_AT_ONCE // _APPLIED_AT_ONCE
            if found is None or work >= _EXAMINED_AT_ONCE or size >= _BYTES_AT_ONCE:
                work = size = 0
                self._flush()
                yield

    def _take(self, found: Found) -> bool:
        """Apply the action to a message; return whether the job continues."""
        counts = self.counts
        if self._action is not None and not counts.found % _APPLIED_AT_ONCE and (full := self._room()):
            self.reason = full
            return False
        counts.found += 1
        counts.bytes += len(found.entry.message.body)
        if len(self.sample) < SAMPLE:
            self.sample.append(found)
        if self._action is not None:
            self._count(self._action.apply(found), self._action.reason)
        return not self._limit or counts.found < self._limit

    def _count(self, outcome: Outcome, reason: str) -> None:
        counts = self.counts
        if outcome is Outcome.DONE:
            counts.done += 1
        elif outcome is Outcome.GONE:
            counts.gone += 1
        else:
            counts.refused += 1
            if reason in self.reasons or len(self.reasons) < _MOST_REASONS:
                self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def _flush(self) -> None:
        if self.removed is not None:
            self.removed.flush()


class UndoJob(Job):
    """The job that undoes an action: applies ``undo`` to each message of ``removed``, in their order."""

    def __init__(
        self,
        number: int,
        user: str,
        queue: "Queue",
        started_at_ms: int,
        removed: "RemovedMessages",
        undo: "Callable[[MovedMessage], Outcome]",
    ) -> None:
        super().__init__(
            number, "undo", user, queue, started_at_ms,
            found=iter(()), total=len(removed), wanted=MessageFilter(), action=None, removed=removed,
        )  # fmt: skip
        self.is_dry = False
        self._undo = undo
        self._source = queue

    def _apply_to_all(self) -> Iterator[None]:
        assert self.removed is not None
        for moved in self.removed:
            if self._is_cancelled or self.queue.is_deleted:
                return
            self.counts.examined += 1
            self.counts.found += 1
            self._count(self._undo(moved), "")
            if self.counts.examined % _APPLIED_AT_ONCE == 0:
                self._source.dispatch()
                yield
        self._source.dispatch()
