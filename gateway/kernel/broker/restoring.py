"""The restoration of records: a table of functions by kind, in order of dependency.

A new kind of record is a subclass of ``Entity`` and an entry of ``RESTORE``. Each function takes the broker and one
record, and returns the queue or log to which messages of the record's ``messages_id`` belong, or ``None``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.access import PermissionRecord, SecretRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.kernel.journal.records.batches import BatchPositionRecord, BatchRecord
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.kept import KeptRecord
from gateway.kernel.journal.records.progress import CleanStopRecord, ProducerRecord, SeenRecord, StreamOffsetRecord
from gateway.kernel.journal.records.sessions import (
    GroupRecord,
    HandshakeRecord,
    RetainedRecord,
    SessionRecord,
    SubscriptionRecord,
    WillRecord,
)
from gateway.kernel.journal.records.topology import (
    ArchiveRecord,
    BindingRecord,
    ExchangeRecord,
    ParameterRecord,
    PolicyRecord,
    QueueRecord,
    VhostRecord,
)
from gateway.kernel.journal.records.workbench import UndoRecord, UndoRowsRecord
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.streams.stream import Stream
from gateway.kernel.streams.stream_log import StreamLog

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker

#: The queue or log that gets the messages of a record, if any.
Restored: TypeAlias = Queue | StreamLog | None


def _vhost(broker: "Broker", record: VhostRecord) -> None:
    broker.install_vhost(record)


def _user_data(broker: "Broker", record: Entity) -> None:
    broker.directory.apply(Put(record))


def _parameter(broker: "Broker", record: ParameterRecord) -> None:
    broker.parameters.restore(record)


def _archive(broker: "Broker", record: ArchiveRecord) -> Restored:
    return broker.vhost(record.vhost).archives.install(record)


def _policy(broker: "Broker", record: PolicyRecord) -> None:
    broker.install_policy(record)
    broker.vhost(record.vhost).policy_applier.policies_restored()


def _exchange(broker: "Broker", record: ExchangeRecord) -> Restored:
    exchange = broker.vhost(record.vhost).exchanges.restore(record)
    return None if exchange.interceptor is None else exchange.interceptor.waiting


def _queue(broker: "Broker", record: QueueRecord) -> Restored:
    queue = broker.vhost(record.vhost).queues.install(record, is_durable=True)
    if isinstance(queue, Stream):
        return queue.log
    return queue if isinstance(queue, Queue) else None


def _stream_offset(broker: "Broker", record: StreamOffsetRecord) -> None:
    stream = broker.vhost(record.vhost).queue(record.queue)
    if isinstance(stream, Stream):
        stream.tracking.restore(record)


def _binding(broker: "Broker", record: BindingRecord) -> None:
    vhost = broker.vhost(record.vhost)
    destination: QueueLike | Exchange
    if record.destination_kind == "exchange":
        destination = vhost.exchange(record.destination)
    else:
        destination = vhost.queue(record.destination)
    source = vhost.exchange(record.source)
    vhost.bindings.restore(source, destination, record.routing_key, record.arguments, record.user)


def _session(broker: "Broker", record: SessionRecord) -> None:
    broker.vhost(record.vhost).sessions.install(record)


def _subscription(broker: "Broker", record: SubscriptionRecord) -> None:
    broker.vhost(record.vhost).sessions.install_subscription(record)


def _group(broker: "Broker", record: GroupRecord) -> None:
    broker.vhost(record.vhost).sessions.groups.install(record)


def _handshake(broker: "Broker", record: HandshakeRecord) -> None:
    broker.vhost(record.vhost).sessions.install_handshake(record)


def _retained(broker: "Broker", record: RetainedRecord) -> None:
    broker.vhost(record.vhost).retained.install(record)


def _will(broker: "Broker", record: WillRecord) -> None:
    broker.vhost(record.vhost).wills.install(record)


def _producer(broker: "Broker", record: ProducerRecord) -> None:
    broker.vhost(record.vhost).producers.install(record)


def _batch(broker: "Broker", record: BatchRecord) -> None:
    broker.vhost(record.vhost).batches.install(record)


def _batch_position(broker: "Broker", record: BatchPositionRecord) -> None:
    broker.vhost(record.vhost).batches.install_position(record)


def _seen(broker: "Broker", record: SeenRecord) -> None:
    vhost = broker.vhost_by_name.get(record.vhost)
    if vhost is None:  # the broker was killed while it deleted these keys
        broker.journal.record(Removed(record.kind, record.key))
    else:
        vhost.deduplication_caches.install(record)


def _kept(broker: "Broker", record: KeptRecord) -> None:
    vhost = broker.vhost_by_name.get(record.vhost)
    if vhost is None:  # the broker was killed while it deleted these messages
        broker.journal.record(Removed(record.kind, record.key))
    else:
        vhost.keeping.install(record)


def _audit(broker: "Broker", record: AuditRecord) -> None:
    broker.audit.install(record)


def _undo(broker: "Broker", record: UndoRecord) -> Restored:
    return broker.workbench.install(record)


def _undo_rows(broker: "Broker", record: UndoRowsRecord) -> None:
    broker.workbench.install_rows(record)


def _clean_stop(broker: "Broker", record: CleanStopRecord) -> None:
    broker.journal.record(Removed(record.kind, record.key))


#: Restores one record.
Restore: TypeAlias = Callable[["Broker", Any], Restored]


#: The function for each kind of record; each kind comes after those that it refers to.
RESTORE: Final[dict[str, Restore]] = {
    CleanStopRecord.kind: _clean_stop,
    VhostRecord.kind: _vhost,
    UserRecord.kind: _user_data,
    SecretRecord.kind: _user_data,
    PermissionRecord.kind: _user_data,
    TopicPermissionRecord.kind: _user_data,
    ParameterRecord.kind: _parameter,
    ArchiveRecord.kind: _archive,
    PolicyRecord.kind: _policy,
    ExchangeRecord.kind: _exchange,
    QueueRecord.kind: _queue,
    StreamOffsetRecord.kind: _stream_offset,
    BindingRecord.kind: _binding,
    SessionRecord.kind: _session,
    SubscriptionRecord.kind: _subscription,
    GroupRecord.kind: _group,
    HandshakeRecord.kind: _handshake,
    RetainedRecord.kind: _retained,
    WillRecord.kind: _will,
    ProducerRecord.kind: _producer,
    BatchRecord.kind: _batch,
    BatchPositionRecord.kind: _batch_position,
    SeenRecord.kind: _seen,
    KeptRecord.kind: _kept,
    AuditRecord.kind: _audit,
    UndoRecord.kind: _undo,
    UndoRowsRecord.kind: _undo_rows,
}
