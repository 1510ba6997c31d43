"""The message workbench of a node: its jobs, and the actions that can be undone."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from gateway.kernel.errors import NotFound, PreconditionFailed
from gateway.kernel.journal.records.workbench import UndoRecord, UndoRowsRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.workbench.actions import Undo
from gateway.kernel.workbench.jobs import Job, JobState, UndoJob
from gateway.kernel.workbench.removed import RemovedMessages
from gateway.kernel.workbench.targets import origin_of

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.events import Event
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue_like import QueueLike

#: The actions that put each removed message somewhere else.
MOVE: Final = "move"
REQUEUE: Final = "requeue"

#: Ended jobs that are kept for their reports.
_KEPT_JOBS: Final = 100

#: The memory of the numbers of one message, in bytes, which count as those of its body do.
_ROW_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class WorkbenchRules:
    """The limits: the time in which an action can be undone, the messages and bytes kept for it, and running jobs."""

    undo_window_s: int = 900
    undo_max_messages: int = 100_000
    undo_max_bytes: int = 256 * 2**20
    max_jobs: int = 8


class Workbench:
    """Owns the jobs and the removed messages of all virtual hosts.

    ``find_queue`` returns a queue by virtual host and name. Jobs are forgotten with a restart; what can be undone is
    not.
    """

    def __init__(
        self,
        journal: "Journal",
        clock: "Clock",
        rules: WorkbenchRules,
        next_queue_id: Callable[[], int],
        find_queue: "Callable[[str, str], QueueLike | None]",
    ) -> None:
        self.rules = rules
        self.journal = journal
        self._clock = clock
        self._next_queue_id = next_queue_id
        self._find_queue = find_queue
        self._jobs: OrderedDict[int, Job] = OrderedDict()
        self._removed: dict[int, RemovedMessages] = {}
        self._job_number = 0
        self._undo_number = 0

    def number_from(self, first: int) -> None:
        """Give new jobs and actions higher numbers than ``first``, so that those of several brokers differ."""
        self._job_number = max(self._job_number, first)
        self._undo_number = max(self._undo_number, first)

    # Jobs

    @property
    def jobs(self) -> list[Job]:
        """The running jobs and the last ended ones, the oldest first."""
        return list(self._jobs.values())

    def job(self, number: int) -> Job:
        """Return a job. :raises NotFound: if it does not exist, or has ended long ago."""
        job = self._jobs.get(number)
        if job is None:
            raise NotFound(f"no job {number}")
        return job

    def next_job_number(self) -> int:
        """Return the number of a new job. :raises PreconditionFailed: if too many are running."""
        running = sum(job.state is JobState.RUNNING for job in self._jobs.values())
        if running >= self.rules.max_jobs:
            raise PreconditionFailed(f"{running} jobs of the workbench are running, at most {self.rules.max_jobs} may")
        self._job_number += 1
        return self._job_number

    def run(self, job: Job) -> None:
        """Run a job in slices, the first one now."""
        self._jobs[job.number] = job
        self._clock.background.add(job.steps(self._clock.wall_ms))
        ended = [each.number for each in self._jobs.values() if each.state is not JobState.RUNNING]
        for number in ended[: max(0, len(ended) - _KEPT_JOBS)]:
            del self._jobs[number]

    # Undo

    @property
    def undoable(self) -> list[RemovedMessages]:
        """The actions that can be undone, the oldest first."""
        return list(self._removed.values())

    def removed(self, number: int) -> RemovedMessages:
        """Return an action that can be undone. :raises NotFound: if its time is over, or it was undone."""
        removed = self._removed.get(number)
        if removed is None:
            raise NotFound(f"no action {number} that can be undone")
        return removed

    def keep(
        self, vhost: str, queue: str, action: str, user: str, target: "QueueLike | None" = None
    ) -> RemovedMessages:
        """Return a new place for the messages that an action removes; they are forgotten when the time is over."""
        self._undo_number += 1
        now_ms = self._clock.wall_ms()
        record = UndoRecord(
            self._undo_number,
            vhost,
            queue,
            action,
            "" if target is None else target.vhost_name,
            "" if target is None else target.name,
            user,
            now_ms,
            now_ms + self.rules.undo_window_s * 1000,
            self._next_queue_id(),
        )
        removed = RemovedMessages(record, self.journal)
        removed.begin()
        self._add(removed)
        return removed

    def room(self) -> str:
        """Return why no further removed message can be kept; empty if one can."""
        messages = sum(len(each) for each in self._removed.values())
        size = sum(each.bytes for each in self._removed.values()) + messages * _ROW_BYTES
        if messages >= self.rules.undo_max_messages:
            return f"{messages} removed messages are kept for undoing, the limit is {self.rules.undo_max_messages}"
        if size >= self.rules.undo_max_bytes:
            return f"{size} bytes of removed messages are kept for undoing, the limit is {self.rules.undo_max_bytes}"
        return ""

    def undo(self, number: int, user: str) -> UndoJob:
        """Undo an action in a job, and forget it at the end.

        :raises NotFound: if it cannot be undone any more, or its queue does not exist.
        :raises PreconditionFailed: if the action, or its undoing, is still running.
        """
        removed = self.removed(number)
        record = removed.record
        if any(job.removed is removed and job.state is JobState.RUNNING for job in self._jobs.values()):
            raise PreconditionFailed(f"action {number} is still running")
        source = self._queue(record.vhost, record.queue)
        target_of = partial(self._target_of, record)
        undo = Undo(source, target_of, removed, self.journal, is_moving=record.action in (MOVE, REQUEUE))
        job = UndoJob(self.next_job_number(), user, source, self._clock.wall_ms(), removed, undo.apply)
        job.when_ended(lambda: self.forget(number) if job.state is JobState.DONE else None)
        self.run(job)
        return job

    def forget(self, number: int) -> None:
        """Forget an action, with the messages that it removed; harmless if it is forgotten."""
        removed = self._removed.pop(number, None)
        if removed is not None:
            self._clock.background.add(removed.forgetting())

    def forget_vhost(self, event: "Event") -> None:
        """Forget the actions in a virtual host that is deleted: a listener of the node's events."""
        if event.name == "vhost.deleted":
            for number in [each.record.number for each in self._removed.values() if each.record.vhost == event.vhost]:
                self.forget(number)

    def _target_of(self, record: UndoRecord, message: Message | None) -> Queue | None:
        """Return the queue that got a message of an action."""
        vhost, name = record.target_vhost, record.target
        if record.action == REQUEUE:
            vhost, name = record.vhost, (origin_of(message) if message is not None else "") or record.queue
        found = self._find_queue(vhost, name)
        return found if isinstance(found, Queue) else None

    def _queue(self, vhost: str, name: str) -> Queue:
        queue = self._find_queue(vhost, name)
        if not isinstance(queue, Queue):
            raise NotFound(f"no queue '{name}' in vhost '{vhost}'")
        return queue

    def _add(self, removed: RemovedMessages) -> None:
        self._removed[removed.record.number] = removed
        self._expire_later(removed)

    def _expire_later(self, removed: RemovedMessages) -> None:
        remaining_s = max(0, removed.record.until_ms - self._clock.wall_ms()) / 1000
        self._clock.call_later(remaining_s, lambda: self._expire(removed))

    def _expire(self, removed: RemovedMessages) -> None:
        """Forget an action whose time is over; one that is running, or being undone, is looked at later."""
        number = removed.record.number
        if self._removed.get(number) is not removed:
            return
        if any(job.removed is removed and job.state is JobState.RUNNING for job in self._jobs.values()):
            self._clock.call_later(1, lambda: self._expire(removed))
        elif self._clock.wall_ms() < removed.record.until_ms:  # the wall clock was set back
            self._expire_later(removed)
        else:
            self.forget(number)

    # Recovery

    def install(self, record: UndoRecord) -> Queue:
        """Add an action found by recovery; return the queue of its removed messages."""
        removed = self._removed[record.number] = RemovedMessages(record, self.journal)
        self._undo_number = max(self._undo_number, record.number)
        return removed.held

    def install_rows(self, record: UndoRowsRecord) -> None:
        """Add messages of an action found by recovery.

        Later messages get greater positions than theirs, even if none of them is left: an undo must find no other.
        """
        removed = self._removed.get(record.undo)
        if removed is not None:
            self.journal.position = max(self.journal.position, removed.restore(record))

    def settle(self, has_vhost: Callable[[str], bool]) -> None:
        """Forget the recovered actions whose virtual host does not exist, and the others when their time is over."""
        for removed in list(self._removed.values()):
            removed.settle()
            if has_vhost(removed.record.vhost):
                self._expire_later(removed)
            else:
                self.forget(removed.record.number)
