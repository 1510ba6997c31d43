"""From what the store kept to a broker as it was: entities first, in the order they need each other, then messages."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.errors import CommandInvalid, ConfigurationError, GatewayError, Refused, StorageError
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Enqueued, Put, Removed, SetAside, StreamSegment
from gateway.kernel.journal.records import (
    ArchiveRecord,
    BindingRecord,
    CleanStopRecord,
    Entity,
    ExchangeRecord,
    GroupRecord,
    HandshakeRecord,
    ParameterRecord,
    PolicyRecord,
    ProducerRecord,
    QueueRecord,
    RetainedRecord,
    SeenRecord,
    SessionRecord,
    StreamOffsetRecord,
    SubscriptionRecord,
    VhostRecord,
    WillRecord,
    queue_id_of,
)
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.streams.stream import Stream
from gateway.kernel.streams.stream_log import StreamLog

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker
    from gateway.kernel.journal.changes import Recovered

#: What subscribers keep.
SubscriberState: TypeAlias = (
    SessionRecord | SubscriptionRecord | GroupRecord | HandshakeRecord | RetainedRecord | WillRecord
)

#: Each kind after those it refers to.
ORDER = (
    "clean_stop",
    "vhost",
    "user",
    "secret",
    "permission",
    "topic_permission",
    "parameter",
    "archive",
    "policy",
    "exchange",
    "queue",
    "stream_offset",
    "binding",
    "session",
    "subscription",
    "group",
    "handshake",
    "retained",
    "will",
    "producer",
    "seen",
)


#: Changes applied between two steps: a few milliseconds of work.
_STEP: Final = 500

#: A reason in the store and in the log is no longer than this.
_LONGEST_REASON: Final = 500


def recover(broker: "Broker", changes: "Iterable[Recovered]") -> int:
    """Rebuild everything from the store's changes; return how many messages came back.

    :raises StorageError: when the store holds an entity this version does not know.
    :raises ConfigurationError: when one cannot be built any more, because a plugin is missing, say.
    """
    recovery = Recovery(broker)
    for _ in recovery.steps(changes):
        pass
    return recovery.messages


class Recovery:
    """The rebuilding of one broker, in steps. ``messages`` counts those that came back.

    ``done`` counts the records that are back in their places, of ``total`` that the store holds.
    An entity that cannot be applied is set aside in the store, and everything else goes on. After a kill the broker
    does not know what had been handed out, so every message counts as redelivered from then on (4.8.17: the flag says
    that it *may* have been delivered before).
    """

    def __init__(self, broker: "Broker", total: int = 0) -> None:
        self.messages = 0
        self.done = 0
        self.total = total
        self._broker = broker
        self._entities: dict[str, list[Entity]] = {kind: [] for kind in ORDER}
        self._highest_id = 0
        self._queue_by_id: dict[int, Queue] = {}
        self._log_by_id: dict[int, StreamLog] = {}
        self._ids_set_aside: set[int] = set()
        self._is_installed = False
        self._seen: set[int] = set()

    def steps(self, changes: "Iterable[Recovered]") -> Iterator[None]:
        """Rebuild, yielding now and then. No timer may fire and no client be served before the last step.

        Raises as ``recover`` does.
        """
        for number, change in enumerate(changes):
            if not self._is_installed and isinstance(change, StreamSegment | Enqueued):
                yield from self._install_all()
            self._take(change)
            if number % _STEP == 0:
                yield
        if not self._is_installed:
            yield from self._install_all()
        for permission, reason in self._broker.directory.faults():
            event = Event(f"{permission.kind}.without_effect", permission.vhost, permission.user, {"reason": reason})
            self._broker.events.emit(event)
        for vhost in self._broker.vhost_by_name.values():
            vhost.sessions.reclaim()
            self._broker.resume_archives(vhost)
            vhost.producers.settle()
            vhost.deduplication_caches.settle()
            yield

    def _take(self, change: "Recovered") -> None:
        if isinstance(change, Put):  # done once it is installed
            self._gather(change.entity)
            return
        self.done += 1
        if isinstance(change, Enqueued):
            self.messages += self._restore(change)
        elif isinstance(change, SetAside):
            self._ids_set_aside.add(change.queue_id)
            self._broker.on_set_aside(change)
        else:
            self.messages += self._restore_segment(change)

    def _gather(self, entity: Entity) -> None:
        if entity.kind not in self._entities:
            raise StorageError(f"the store holds a {entity.kind}, which this version does not know")
        self._entities[entity.kind].append(entity)
        self._highest_id = max(self._highest_id, queue_id_of(entity))

    def _restore(self, change: Enqueued) -> bool:
        """Give a message back to its queue; the first of the queues that share a message owns the content."""
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

    def _restore_segment(self, segment: StreamSegment) -> int:
        """Give a stream a segment back; return how many messages are in it."""
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
        # new messages stand behind the doubtful ones, also when none of those is left to tell how far they went
        broker.journal.position = max(broker.journal.position, broker.doubtful_up_to)
        highest = max(self._highest_id, *self._ids_set_aside, 0)
        broker.skip_queue_ids(highest)  # before a policy makes an archive of its own
        for kind in ORDER:
            entities, self._entities[kind] = self._entities[kind], []
            for number, entity in enumerate(entities):
                self._install(entity)
                self.done += 1
                if number % _STEP == 0:
                    yield

    def _install(self, entity: Entity) -> None:
        try:
            installed = _install_one(self._broker, entity)
        except CommandInvalid as refusal:  # a plugin is missing: nothing is wrong with the record
            raise ConfigurationError(f"{entity.kind} {list(entity.key)} cannot be restored: {refusal}") from None
        except Refused as refusal:
            self._set_aside(entity, str(refusal))
            return
        except GatewayError:
            raise
        except Exception as error:  # whatever is in the record, it must not keep the broker from starting
            self._set_aside(entity, f"{type(error).__name__}: {error}")
            return
        if isinstance(installed, Exchange) and installed.interceptor is not None:
            installed = installed.interceptor.waiting
        if isinstance(installed, Stream):
            installed = installed.log
        if isinstance(installed, Queue):
            self._queue_by_id[installed.id] = installed
        elif isinstance(installed, StreamLog):
            self._log_by_id[installed.id] = installed

    def _set_aside(self, entity: Entity, reason: str) -> None:
        aside = SetAside(entity.kind, entity.key, " ".join(reason.split())[:_LONGEST_REASON], queue_id_of(entity))
        self._ids_set_aside.add(aside.queue_id)
        self._broker.journal.record(aside)
        self._broker.on_set_aside(aside)


def _install_one(broker: "Broker", entity: Entity) -> object:
    if isinstance(entity, VhostRecord):
        return broker.install_vhost(entity)
    if isinstance(entity, ExchangeRecord):
        return broker.vhost(entity.vhost).exchanges.restore(entity)
    if isinstance(entity, QueueRecord):
        return broker.vhost(entity.vhost).queues.install(entity, is_durable=True)
    if isinstance(entity, StreamOffsetRecord):
        _install_offset(broker, entity)
        return None
    if isinstance(entity, BindingRecord):
        return _install_binding(broker, entity)
    if isinstance(entity, PolicyRecord):
        broker.install_policy(entity)
        broker.vhost(entity.vhost).policy_applier.policies_restored()
        return None
    if isinstance(entity, ArchiveRecord):
        return broker.vhost(entity.vhost).archives.install(entity)
    if isinstance(entity, CleanStopRecord):
        broker.journal.record(Removed(entity.kind, entity.key))
        return None
    if isinstance(entity, ParameterRecord):
        return broker.parameters.setdefault(entity.key, entity)
    if isinstance(entity, ProducerRecord):
        broker.vhost(entity.vhost).producers.install(entity)
        return None
    if isinstance(entity, SeenRecord):
        _install_seen(broker, entity)
        return None
    if isinstance(entity, SubscriberState):
        _install_subscriber_state(broker, entity)
        return None
    broker.directory.apply(Put(entity))
    return None


def _install_subscriber_state(broker: "Broker", entity: SubscriberState) -> None:
    vhost = broker.vhost(entity.vhost)
    match entity:
        case SessionRecord():
            vhost.sessions.install(entity)
        case SubscriptionRecord():
            vhost.sessions.install_subscription(entity)
        case GroupRecord():
            vhost.sessions.groups.install(entity)
        case HandshakeRecord():
            vhost.sessions.install_handshake(entity)
        case RetainedRecord():
            vhost.retained.install(entity)
        case WillRecord():
            vhost.wills.install(entity)


def _install_seen(broker: "Broker", entity: SeenRecord) -> None:
    vhost = broker.vhost_by_name.get(entity.vhost)
    if vhost is None:  # a kill came while its windows were being forgotten
        broker.journal.record(Removed(entity.kind, entity.key))
    else:
        vhost.deduplication_caches.install(entity)


def _install_offset(broker: "Broker", record: StreamOffsetRecord) -> None:
    stream = broker.vhost(record.vhost).queue(record.queue)
    if isinstance(stream, Stream):
        stream.tracking.restore(record)


def _install_binding(broker: "Broker", record: BindingRecord) -> object:
    vhost = broker.vhost(record.vhost)
    named = vhost.exchange if record.destination_kind == "exchange" else vhost.queue
    destination = named(record.destination)
    source = vhost.exchange(record.source)
    return vhost.bindings.restore(source, destination, record.routing_key, record.arguments, record.user)
