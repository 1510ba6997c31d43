"""From what the store kept to a broker as it was: entities first, in the order they need each other, then messages."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from gateway.kernel.changes import Enqueued, Put, Removed
from gateway.kernel.errors import ConfigurationError, Refused, StorageError
from gateway.kernel.exchange import Exchange
from gateway.kernel.queue import Queue
from gateway.kernel.records import (
    BindingRecord,
    CleanStopRecord,
    Entity,
    ExchangeRecord,
    GroupRecord,
    HandshakeRecord,
    ParameterRecord,
    PolicyRecord,
    QueueRecord,
    RetainedRecord,
    SessionRecord,
    SubscriptionRecord,
    VhostRecord,
    WillRecord,
)

if TYPE_CHECKING:
    from gateway.kernel.broker import Broker
    from gateway.kernel.changes import Change

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
    "policy",
    "exchange",
    "queue",
    "binding",
    "session",
    "subscription",
    "group",
    "handshake",
    "retained",
    "will",
)


def recover(broker: "Broker", changes: "Iterable[Change]") -> int:
    """Rebuild everything from the store's changes; return how many messages came back.

    After a kill nobody knows what had been handed out, so every message counts as redelivered from then on (4.8.17: the
    flag says that it *may* have been delivered before).

    :raises StorageError: when the store holds an entity this version does not know.
    :raises ConfigurationError: when one cannot be built any more, because a plugin is missing, say.
    """
    entities: list[Entity] = []
    count = 0
    queue_by_id: dict[int, Queue] | None = None
    seen: set[int] = set()
    for change in changes:
        if isinstance(change, Put):
            entities.append(change.entity)
        elif isinstance(change, Enqueued):
            if queue_by_id is None:
                queue_by_id = _install(broker, entities)
            count += _restore(broker, queue_by_id, change, seen)
    if queue_by_id is None:
        _install(broker, entities)
    for vhost in broker.vhost_by_name.values():
        vhost.sessions.reclaim()
    return count


def _restore(broker: "Broker", queue_by_id: dict[int, Queue], change: Enqueued, seen: set[int]) -> bool:
    """Give a message back to its queue; the first of the queues that share a message owns the content."""
    queue = queue_by_id.get(change.queue_id)
    if queue is None:
        return False
    if change.message_id in seen:
        broker.journal.shared(change.message_id)
    seen.add(change.message_id)
    queue.restore(change, is_redelivered=change.position <= broker.doubtful_up_to or change.delivery_count > 0)
    return True


def _install(broker: "Broker", entities: list[Entity]) -> dict[int, Queue]:
    for entity in entities:
        if entity.kind not in ORDER:
            raise StorageError(f"the store holds a {entity.kind}, which this version does not know")
    clean_stops = [entity.doubtful_up_to for entity in entities if isinstance(entity, CleanStopRecord)]
    broker.doubtful_up_to = clean_stops[0] if clean_stops else broker.journal.position
    # new messages stand behind the doubtful ones, also when none of those is left to tell how far they went
    broker.journal.position = max(broker.journal.position, broker.doubtful_up_to)
    queue_by_id = {}
    for entity in sorted(entities, key=lambda entity: ORDER.index(entity.kind)):
        try:
            installed = _install_one(broker, entity)
        except Refused as refusal:
            raise ConfigurationError(f"{entity.kind} {list(entity.key)} cannot be restored: {refusal}") from None
        if isinstance(installed, Exchange) and installed.guard is not None:
            installed = installed.guard.waiting
        if isinstance(installed, Queue):
            queue_by_id[installed.id] = installed
    broker.skip_queue_ids(max(queue_by_id, default=0))
    return queue_by_id


def _install_one(broker: "Broker", entity: Entity) -> object:
    if isinstance(entity, VhostRecord):
        return broker.install_vhost(entity)
    if isinstance(entity, ExchangeRecord):
        return broker.vhost(entity.vhost).exchanges.install(entity, is_durable=True)
    if isinstance(entity, QueueRecord):
        return broker.vhost(entity.vhost).queues.install(entity, is_durable=True)
    if isinstance(entity, BindingRecord):
        return _install_binding(broker, entity)
    if isinstance(entity, PolicyRecord):
        broker.install_policy(entity)
        return None
    if isinstance(entity, CleanStopRecord):
        broker.journal.record(Removed(entity.kind, entity.key))
        return None
    if isinstance(entity, ParameterRecord):
        return broker.parameters.setdefault(entity.key, entity)
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


def _install_binding(broker: "Broker", record: BindingRecord) -> object:
    vhost = broker.vhost(record.vhost)
    named = vhost.exchange if record.destination_kind == "exchange" else vhost.queue
    destination = named(record.destination)
    return vhost.bindings.install(vhost.exchange(record.source), destination, record.routing_key, record.arguments)
