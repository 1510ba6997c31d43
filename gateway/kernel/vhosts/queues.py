"""The queues of a virtual host."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.kernel.backlog.memory_budget import MemoryBudget
from gateway.kernel.clock import drained
from gateway.kernel.errors import InternalError, NotAllowed, PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Removed
from gateway.kernel.journal.entity_codec import writable
from gateway.kernel.journal.records.topology import QueueRecord
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.bindings import MOST_AT_ONCE
from gateway.kernel.settings.ineffective_arguments import warnings_on
from gateway.kernel.settings.limits import (
    require_room_for_binding,
    require_room_for_consumer,
    require_room_for_exclusive,
    require_room_for_queue,
)
from gateway.kernel.settings.user_counters import ConsumerTally
from gateway.kernel.streams.groups import GroupLoads
from gateway.kernel.streams.read_scheduler import ReadScheduler
from gateway.kernel.streams.stream import Stream
from gateway.kernel.traffic import VhostTraffic
from gateway.kernel.vhosts.context import VhostContext
from gateway.kernel.vhosts.queue_rules import QueueRules

if TYPE_CHECKING:
    from gateway.kernel.queueing.consumer import Consumer
    from gateway.kernel.vhosts.declarations import QueueDeclaration


class Queues:
    """Declares, builds and deletes the queues of one virtual host, and stores those that survive a restart.

    ``traffic`` keeps the counts of deleted queues. All virtual hosts share the ``reserve``.
    """

    def __init__(
        self,
        context: VhostContext,
        queue_by_name: dict[str, QueueLike],
        traffic: VhostTraffic,
        rules: QueueRules,
        reserve: MemoryBudget,
    ) -> None:
        self._context = context
        self._queue_by_name = queue_by_name
        self._traffic = traffic
        self.rules = rules
        self._reserve = reserve
        self._consumers = ConsumerTally(context.users.consumers)
        self._exclusive: dict[object, dict[QueueLike, None]] = {}
        self._departed: set[object] = set()  # owners whose queues are being deleted
        self._deletions: dict[QueueLike, Iterator[None]] = {}  # in progress
        self._read_scheduler = ReadScheduler(context.journal.clock)
        self._group_loads = GroupLoads()

    @property
    def consumer_count(self) -> int:
        """The number of consumers of all queues."""
        return self._consumers.count

    @property
    def default_type(self) -> str:
        """The type of a queue declared without one: the virtual host's default, else the node's."""
        return self._context.record.default_queue_type or self.rules.default_type

    def declare(self, declaration: "QueueDeclaration") -> QueueLike:
        """Return the declared queue; create it if needed. Raises as ``VirtualHost.declare_queue`` does."""
        declaration = declaration.typed(self.default_type)
        offered = self._context.queue_features.settings
        queue = self._queue_by_name.get(declaration.name)
        if queue is not None and (queue.owner in self._departed or queue in self._deletions):
            for _ in self.deleting(queue):  # callers that can wait use ``deletion_of`` first
                pass
            queue = None
        if queue is not None:
            declaration.require_equivalent(queue, offered)
            queue.redeclared()
            return queue
        declaration.require_new(offered)
        self._require_admission(declaration)
        return self._make(declaration)

    def install(self, record: QueueRecord, *, is_durable: bool, owner: object | None = None) -> QueueLike:
        """Build a queue from its record, live or in recovery."""
        is_stream = record.arguments.get("x-queue-type") == "stream"
        queue: QueueLike = self._stream(record) if is_stream else self._queue(record, is_durable, owner)
        queue.consumer_tally = self._consumers
        queue.on_consumer = self._report_consumer
        queue.user = record.user
        self._context.interception.watch(queue)
        self._context.users.queues.added(record.user)
        self._context.policy_applier.apply_to_queue(queue)
        self._queue_by_name[record.name] = queue
        if owner is not None:
            self._exclusive.setdefault(owner, {})[queue] = None
        self._context.router.forget()  # the default exchange may be the alternate of any other
        return queue

    def _queue(self, record: QueueRecord, is_durable: bool, owner: object | None) -> Queue:
        return Queue(
            self._context.vhost_name,
            record.name,
            self._context.journal,
            id=record.id,
            is_durable=is_durable,
            is_auto_delete=record.is_auto_delete,
            owner=owner,
            arguments=record.arguments,
            resident_messages=self.rules.resident_messages,
            reserve=self._reserve,
            reapply=self._context.policy_applier.reapply,
        )

    def _stream(self, record: QueueRecord) -> Stream:
        return Stream(
            self._context.vhost_name,
            record.name,
            self._context.journal,
            id=record.id,
            since_ms=record.since_ms,
            arguments=record.arguments,
            segment_size=self.rules.segment_size,
            read_scheduler=self._read_scheduler,
            group_loads=self._group_loads,
        )

    def flush_offsets(self) -> None:
        """Flush the stream offsets that are written with a delay: the node stops."""
        for queue in self._queue_by_name.values():
            queue.flush()

    def delete(self, queue: QueueLike, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete a queue with its messages, bindings and consumers; return the number of ready messages.

        :raises PreconditionFailed: when it must be unused or empty and is not.
        """
        entity = f"queue '{queue.name}' in vhost '{self._context.vhost_name}'"
        if if_unused and len(queue.consumers):
            raise PreconditionFailed(f"{entity} in use")
        if if_empty and (len(queue) or queue.delayed_count or queue.pending_dead_letter_count):
            raise PreconditionFailed(f"{entity} not empty")
        if queue.is_deleted:
            return 0
        if self._context.bindings.count_at(queue) + len(queue.consumers) <= MOST_AT_ONCE:
            return self._remove(queue)
        self._context.journal.clock.background.add(self.deleting(queue))
        return len(queue)

    def purging(self, queue: Queue) -> Iterator[None]:
        """Remove every ready message of a queue at once; return the steps in which the store removes them."""
        details = {"messages": len(queue.ready)}
        steps = queue.drops.purge_steps()
        self._context.events.emit(Event("queue.purged", self._context.vhost_name, queue.name, details))
        return steps

    def deleting(self, queue: QueueLike) -> Iterator[None]:
        """Return the steps that delete a queue.

        It keeps its name until its last binding is removed, but counts as not found. Several callers may run the steps.
        """
        if queue not in self._deletions and not queue.is_deleted:
            self._deletions[queue] = self._deleting(queue)
        return self.deletion_of(queue.name)

    def deletion_of(self, name: str) -> Iterator[None]:
        """Return the steps to run before a queue of this name can be created; none if none is being deleted.

        The work is shared: it is done once for all callers, and continues if one of them stops.
        """
        queue = self._queue_by_name.get(name)
        if queue is not None and queue in self._deletions:
            for _ in self._deletions[queue]:
                yield

    def is_being_deleted(self, name: str) -> bool:
        """Return whether a queue of this name is being deleted."""
        return bool(self._deletions) and self._queue_by_name.get(name) in self._deletions

    def _deleting(self, queue: QueueLike) -> Iterator[None]:
        try:
            yield from self._context.bindings.removing(queue)
            if len(queue.consumers) > MOST_AT_ONCE:
                yield from _cancelling(queue)
            if not queue.is_deleted:
                self._remove(queue)
        finally:
            self._deletions.pop(queue, None)

    def deleting_all(self) -> Iterator[None]:
        """Return the steps that delete every queue: the virtual host is deleted."""
        for queue in drained(list(self._queue_by_name.values())):
            yield from self.deleting(queue)
            yield

    def release(self, owner: object) -> None:
        """Delete the exclusive queues of a closed connection, durable or not (R31); many are deleted in slices."""
        if owner in self._exclusive:  # also if its queues were deleted one by one
            with self._context.acting.being(None):
                self._context.journal.clock.background.add(self._releasing(owner))

    def _releasing(self, owner: object) -> Iterator[None]:
        self._departed.add(owner)
        try:
            for queue in drained(list(self._exclusive.get(owner, ()))):
                self.delete(queue)
                yield
        finally:
            self._departed.discard(owner)
            self._exclusive.pop(owner, None)

    def _require_admission(self, declaration: "QueueDeclaration") -> None:
        """Check whether a new queue is permitted.

        :raises InternalError: as RabbitMQ does, when it is transient and such queues are not permitted.
        :raises PreconditionFailed: when a limit on queues is reached.
        """
        require_permitted(declaration, self.rules)
        limits = self._context.record.limits
        name = declaration.name
        rules = self.rules
        require_room_for_queue(declaration.vhost_name, limits, name, len(self._queue_by_name), rules.max_queues)
        if declaration.owner is not None:
            owned = len(self._exclusive.get(declaration.owner, ()))
            require_room_for_exclusive(name, owned, rules.max_exclusive_queues)
        self._context.users.queues.require_room(declaration.user, f"cannot declare queue '{name}'")

    def require_room_for_consumer(self, on_channel: int, user: str) -> None:
        """Check the limits before a channel adds a consumer.

        :raises NotAllowed: when the channel has reached its limit.
        :raises PreconditionFailed: when the virtual host or the user has reached its limit.
        """
        limits, rules = self._context.record.limits, self.rules
        most = rules.max_consumers_per_channel
        if most and on_channel >= most:
            raise NotAllowed(f"reached maximum ({most}) of consumers per channel")
        require_room_for_consumer(self._context.vhost_name, limits, self._consumers.count, rules.max_consumers)
        self._context.users.consumers.require_room(user, "cannot consume")

    def require_room_for_binding(self, user: str) -> None:
        """Check the limits before a binding is added. :raises PreconditionFailed: at the limit of the vhost or user."""
        limits, bindings = self._context.record.limits, self._context.bindings
        require_room_for_binding(self._context.vhost_name, limits, bindings.count, self.rules.max_bindings)
        self._context.users.bindings.require_room(user, "cannot bind")

    def _make(self, declaration: "QueueDeclaration") -> QueueLike:
        """Create and store a new queue, and emit its event."""
        record = QueueRecord(
            declaration.vhost_name,
            declaration.name,
            self._context.next_queue_id() if declaration.survives else 0,
            declaration.is_auto_delete,
            dict(declaration.arguments),
            declaration.user,
            self._context.journal.now_ms,
        )
        put = writable(record)
        queue = self.install(record, is_durable=declaration.is_durable, owner=declaration.owner)
        if declaration.survives:
            self._context.journal.record(put)
        emit = self._context.events.emit
        details = {
            "durable": declaration.is_durable,
            "auto_delete": record.is_auto_delete,
            "exclusive": declaration.owner is not None,
            "arguments": record.arguments,
            "user": record.user,
        }
        emit(Event("queue.created", record.vhost, record.name, details))
        for argument, advice in warnings_on(record.arguments):
            emit(Event("queue.advice", record.vhost, record.name, {"argument": argument, "advice": advice}))
        return queue

    def _report_consumer(self, consumer: "Consumer", is_added: bool) -> None:
        """Emit the event of a consumer that was added or removed, with RabbitMQ's names."""
        origin = consumer.subscriber.origin
        channel = f"{origin.connection} ({origin.channel})" if origin.channel else origin.connection
        details: dict[str, object] = {"queue": consumer.queue.name, "channel": channel}
        if is_added:
            details |= {
                "exclusive": consumer.is_exclusive,
                "ack_required": consumer.needs_settling,
                "prefetch_count": consumer.credit.limit,
                "arguments": consumer.arguments,
            }
        name = "consumer.created" if is_added else "consumer.deleted"
        self._context.events.emit(Event(name, self._context.vhost_name, consumer.tag, details, origin.user))

    def _remove(self, queue: QueueLike) -> int:
        context = self._context
        queue.close()
        self._traffic.departed[queue.type_name].add(queue.counters)
        del self._queue_by_name[queue.name]
        context.users.queues.removed(queue.user)
        self._exclusive.get(queue.owner, {}).pop(queue, None)
        for binding in context.bindings.to(queue):
            context.bindings.remove(binding)
        context.router.forget()
        count = queue.erase()
        if queue.id:
            context.journal.record(Removed("queue", (context.vhost_name, queue.name)))
        for _ in _cancelling(queue):
            pass
        context.events.emit(Event("queue.deleted", context.vhost_name, queue.name))
        queue.disown()
        return count


def _cancelling(queue: QueueLike) -> Iterator[None]:
    """Return the steps that cancel every consumer of a queue and notify its client."""
    for consumer in drained(list(queue.consumers)):
        queue.cancel(consumer)
        consumer.subscriber.cancelled(consumer)
        yield


def require_permitted(declaration: "QueueDeclaration", rules: QueueRules) -> None:
    """Check whether transient queues are permitted. :raises InternalError: as RabbitMQ does."""
    if not (declaration.is_durable or declaration.owner is not None or rules.permits_transient):
        queue = f"queue '{declaration.name}' is neither durable nor exclusive"
        raise InternalError(f"transient non-exclusive queues are not permitted: {queue}")
