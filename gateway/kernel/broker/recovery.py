"""Recovery: rebuild a broker from its store; entities first, in order of dependency, then messages."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.broker.restoring import RESTORE
from gateway.kernel.errors import CommandInvalid, ConfigurationError, GatewayError, Refused, StorageError
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Enqueued, Put, SetAside, StreamSegment
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.progress import CleanStopRecord
from gateway.kernel.messages.paged_segment import DURABLE, REDELIVERED
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.streams.stream_log import StreamLog

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker
    from gateway.kernel.journal.changes import Recovered

#: Changes applied between two steps: a few milliseconds of work.
_STEP: Final = 500

#: The flags of a message that may have been delivered before, and of one that was not.
_REDELIVERED: Final = bytes((DURABLE | REDELIVERED,))
_NEW: Final = bytes((DURABLE,))

#: The maximum length of a reason in the store and in the log.
_LONGEST_REASON: Final = 500


def recover(broker: "Broker", changes: "Iterable[Recovered | EnqueuedRun]") -> int:
    """Rebuild everything from the store's changes; return the number of recovered messages.

    :raises StorageError: when the store holds an entity that this version does not support.
    :raises ConfigurationError: when an entity cannot be built, for example because a plugin is missing.
    """
    recovery = Recovery(broker)
    for _ in recovery.steps(changes):
        pass
    return recovery.messages


class Recovery:
    """The recovery of one broker, in steps. ``messages`` counts the recovered messages.

    ``done`` counts the restored records, of ``total`` in the store. An entity that cannot be applied is set aside in
    the store, and recovery continues. After a kill the broker cannot tell which messages were delivered, so all of them
    are redelivered (4.8.17: a set flag means that a message *may* have been delivered before).
    """

    def __init__(self, broker: "Broker", total: int = 0) -> None:
        self.messages = 0
        self.done = 0
        self.total = total
        self._broker = broker
        self._entities: dict[str, list[Entity]] = {kind: [] for kind in RESTORE}
        self._highest_id = 0
        self._queue_by_id: dict[int, Queue] = {}
        self._log_by_id: dict[int, StreamLog] = {}
        self._ids_set_aside: set[int] = set()
        self._is_installed = False
        self._seen: set[int] = set()

    def steps(self, changes: "Iterable[Recovered | EnqueuedRun]") -> Iterator[None]:
        """Rebuild, yielding every few milliseconds. Timers and clients must wait until the last step.

        Raises as ``recover`` does.
        """
        for number, change in enumerate(changes):
            if not self._is_installed and isinstance(change, StreamSegment | Enqueued | EnqueuedRun):
                yield from self._install_all()
            self._take(change)
            if number % _STEP == 0 or isinstance(change, EnqueuedRun):
                yield
        if not self._is_installed:
            yield from self._install_all()
        for permission, reason in self._broker.directory.faults():
            event = Event(f"{permission.kind}.without_effect", permission.vhost, permission.user, {"reason": reason})
            self._broker.events.emit(event)
        for vhost in self._broker.vhost_by_name.values():
            vhost.sessions.resume()
            self._broker.resume_archives(vhost)
            vhost.producers.settle()
            vhost.deduplication_caches.settle()
            vhost.keeping.settle(vhost.exchange_by_name)
            yield
        self._broker.audit.settle()
        self._broker.workbench.settle(self._broker.vhost_by_name.__contains__)

    def _take(self, change: "Recovered | EnqueuedRun") -> None:
        if isinstance(change, Put):  # counted once it is installed
            self._gather(change.entity)
            return
        self.done += len(change) if isinstance(change, EnqueuedRun) else 1
        if isinstance(change, EnqueuedRun):
            self.messages += self._restore_run(change)
        elif isinstance(change, Enqueued):
            self.messages += self._restore(change)
        elif isinstance(change, SetAside):
            self._ids_set_aside.add(change.queue_id)
            self._broker.store_reports.on_set_aside(change)
        else:
            self.messages += self._restore_segment(change)

    def _gather(self, entity: Entity) -> None:
        if entity.kind not in self._entities:
            raise StorageError(f"the store holds a record of kind '{entity.kind}', which this version does not support")
        self._entities[entity.kind].append(entity)
        self._highest_id = max(self._highest_id, entity.messages_id)

    def _restore(self, change: Enqueued) -> bool:
        """Restore a message to its queue; the first of the queues that share a message owns the content."""
        queue = self._queue_by_id.get(change.queue_id)
        if queue is None and change.queue_id not in self._ids_set_aside:
            return False
        if change.message_id in self._seen:
            self._broker.journal.shared(change.message_id)
        self._seen.add(change.message_id)
        if queue is None:  # the content stays for the queue that is set aside
            return False
        is_redelivered = change.position <= self._broker.doubtful_up_to or change.delivery_count > 0
        queue.restore(change, is_redelivered=is_redelivered)
        return True

    def _restore_run(self, run: EnqueuedRun) -> int:
        """Restore messages to their queue; return how many there are."""
        queue = self._queue_by_id.get(run.queue_id)
        message_ids = set(run.message_ids)
        if queue is None or len(message_ids) < len(run):
            return sum(map(self._restore, run.each()))
        for message_id in message_ids & self._seen:
            self._broker.journal.shared(message_id)
        self._seen |= message_ids
        doubtful = bisect_right(run.positions, self._broker.doubtful_up_to)
        flags = _REDELIVERED * doubtful + _NEW * (len(run) - doubtful)
        if any(run.delivery_counts):
            counted = zip(flags, run.delivery_counts, strict=True)
            flags = bytes(flag | REDELIVERED if count else flag for flag, count in counted)
        queue.restore_run(run, flags)
        return len(run)

    def _restore_segment(self, segment: StreamSegment) -> int:
        """Restore a segment of a stream; return the number of its messages."""
        log = self._log_by_id.get(segment.stream_id)
        if log is None:
            return 0
        log.restore(segment)
        return segment.end - segment.first

    # Entities

    def _install_all(self) -> Iterator[None]:
        broker = self._broker
        self._is_installed = True
        stops = self._entities[CleanStopRecord.kind]
        clean_stops = [entity.doubtful_up_to for entity in stops if isinstance(entity, CleanStopRecord)]
        broker.doubtful_up_to = clean_stops[0] if clean_stops else broker.journal.position
        # new messages get positions above the doubtful ones, even if none of those is left
        broker.journal.position = max(broker.journal.position, broker.doubtful_up_to)
        highest = max(self._highest_id, *self._ids_set_aside, 0)
        broker.skip_queue_ids(highest)  # before a policy opens an archive, which takes an id
        for kind in RESTORE:
            entities, self._entities[kind] = self._entities[kind], []
            for number, entity in enumerate(entities):
                self._install(entity)
                self.done += 1
                if number % _STEP == 0:
                    yield

    def _install(self, entity: Entity) -> None:
        try:
            restored = RESTORE[entity.kind](self._broker, entity)
        except CommandInvalid as refusal:  # a plugin is missing: nothing is wrong with the record
            raise ConfigurationError(f"{entity.kind} {list(entity.key)} cannot be restored: {refusal}") from None
        except Refused as refusal:
            self._set_aside(entity, str(refusal))
            return
        except GatewayError:
            raise
        except Exception as error:  # a damaged record must not prevent the start
            self._set_aside(entity, f"{type(error).__name__}: {error}")
            return
        if isinstance(restored, Queue):
            self._queue_by_id[restored.id] = restored
        elif restored is not None:
            self._log_by_id[restored.id] = restored

    def _set_aside(self, entity: Entity, reason: str) -> None:
        aside = SetAside(entity.kind, entity.key, " ".join(reason.split())[:_LONGEST_REASON], entity.messages_id)
        self._ids_set_aside.add(aside.queue_id)
        self._broker.journal.record(aside)
        self._broker.store_reports.on_set_aside(aside)
