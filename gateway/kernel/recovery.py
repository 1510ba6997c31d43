"""From what the store kept to a broker as it was: entities first, in the order they need each other, then messages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gateway.kernel.changes import Enqueued, Put, Removed, StreamSegment
from gateway.kernel.errors import ConfigurationError, Refused, StorageError
from gateway.kernel.events import Event
from gateway.kernel.exchange import Exchange
from gateway.kernel.queue import Queue
from gateway.kernel.records import (
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
    SessionRecord,
    StreamOffsetRecord,
    SubscriptionRecord,
    VhostRecord,
    WillRecord,
    queue_id_of,
)
from gateway.kernel.stream import Stream
from gateway.kernel.stream_log import Log

if TYPE_CHECKING:
    from gateway.kernel.broker import Broker
    from gateway.kernel.changes import Recovered

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
)


@dataclass(frozen=True, slots=True)
class Installed:
    """What keeps messages, by its number in the store: queues, and the logs of streams."""

    queue_by_id: dict[int, Queue]
    log_by_id: dict[int, Log]


def recover(broker: "Broker", changes: "Iterable[Recovered]") -> int:
    """Rebuild everything from the store's changes; return how many messages came back.

    After a kill nobody knows what had been handed out, so every message counts as redelivered from then on (4.8.17: the
    flag says that it *may* have been delivered before).

    :raises StorageError: when the store holds an entity this version does not know.
    :raises ConfigurationError: when one cannot be built any more, because a plugin is missing, say.
    """
    entities: list[Entity] = []
    count = 0
    installed: Installed | None = None
    seen: set[int] = set()
    for change in changes:
        if isinstance(change, Put):
            entities.append(change.entity)
            continue
        if installed is None:
            installed = _install(broker, entities)
        if isinstance(change, StreamSegment):
            count += _restore_segment(installed, change)
        else:
            count += _restore(broker, installed, change, seen)
    if installed is None:
        _install(broker, entities)
    for permission, reason in broker.directory.faults():
        event = Event(f"{permission.kind}.without_effect", permission.vhost, permission.user, {"reason": reason})
        broker.events.emit(event)
    for vhost in broker.vhost_by_name.values():
        vhost.sessions.reclaim()
        broker.resume_archives(vhost)
        vhost.producers.settle()
    return count


def _restore(broker: "Broker", installed: Installed, change: Enqueued, seen: set[int]) -> bool:
    """Give a message back to its queue; the first of the queues that share a message owns the content."""
    queue = installed.queue_by_id.get(change.queue_id)
    if queue is None:
        return False
    if change.message_id in seen:
        broker.journal.shared(change.message_id)
    seen.add(change.message_id)
    queue.restore(change, is_redelivered=change.position <= broker.doubtful_up_to or change.delivery_count > 0)
    return True


def _restore_segment(installed: Installed, segment: StreamSegment) -> int:
    """Give a stream a segment back; return how many messages are in it."""
    log = installed.log_by_id.get(segment.stream_id)
    if log is None:
        return 0
    log.restore(segment)
    return segment.end - segment.first


def _install(broker: "Broker", entities: list[Entity]) -> Installed:
    for entity in entities:
        if entity.kind not in ORDER:
            raise StorageError(f"the store holds a {entity.kind}, which this version does not know")
    clean_stops = [entity.doubtful_up_to for entity in entities if isinstance(entity, CleanStopRecord)]
    broker.doubtful_up_to = clean_stops[0] if clean_stops else broker.journal.position
    # new messages stand behind the doubtful ones, also when none of those is left to tell how far they went
    broker.journal.position = max(broker.journal.position, broker.doubtful_up_to)
    places = Installed({}, {})
    broker.skip_queue_ids(max(map(queue_id_of, entities), default=0))  # before a policy makes an archive of its own
    for entity in sorted(entities, key=lambda entity: ORDER.index(entity.kind)):
        try:
            installed = _install_one(broker, entity)
        except Refused as refusal:
            raise ConfigurationError(f"{entity.kind} {list(entity.key)} cannot be restored: {refusal}") from None
        if isinstance(installed, Exchange) and installed.guard is not None:
            installed = installed.guard.waiting
        if isinstance(installed, Stream):
            installed = installed.log
        if isinstance(installed, Queue):
            places.queue_by_id[installed.id] = installed
        elif isinstance(installed, Log):
            places.log_by_id[installed.id] = installed
    return places


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
        broker.vhost(entity.vhost).equipment.policies_restored()
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


def _install_offset(broker: "Broker", record: StreamOffsetRecord) -> None:
    stream = broker.vhost(record.vhost).queue(record.queue)
    if isinstance(stream, Stream):
        stream.tracking.restore(record)


def _install_binding(broker: "Broker", record: BindingRecord) -> object:
    vhost = broker.vhost(record.vhost)
    named = vhost.exchange if record.destination_kind == "exchange" else vhost.queue
    destination = named(record.destination)
    return vhost.bindings.restore(vhost.exchange(record.source), destination, record.routing_key, record.arguments)
