"""The shared subscription groups of one virtual host: their members, and the lifetime of their queues."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.sessions import GroupRecord, SubscriptionRecord

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.consumer import ConsumedQueue
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.sessions.host import SessionHost

#: The prefix of the queues of shared subscription groups.
SHARED_PREFIX: Final = "mqtt-shared-"

#: The maximum length of a queue name, in bytes.
_LONGEST_NAME: Final = 255

#: The time to wait for members after a start before the queue of a group is deleted, in seconds.
_REJOIN_S: Final = 300


def shared_queue_name(group: str, binding_key: str) -> str:
    """Return the name of the queue that a group shares for a filter."""
    name = f"{SHARED_PREFIX}{group}-{binding_key}"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    return f"{SHARED_PREFIX}{blake2b(name.encode(), digest_size=16).hexdigest()}"


class Groups:
    """Owns the members of each group, sessions, by queue name, and the queues that were created for groups.

    Only those queues are deleted with their last member, not a queue of such a name that an operator declared. The
    record contains the queue's number, so that a later queue of the same name is not confused with it.
    """

    def __init__(self, vhost: "SessionHost", journal: "Journal") -> None:
        self._vhost = vhost
        self._journal = journal
        self._members: dict[str, dict[object, None]] = {}
        self._made: dict[str, int] = {}

    def made(self, queue: "QueueLike") -> None:
        """Record that a queue was declared for a group."""
        self._made[queue.name] = queue.id
        self._journal.record(Put(GroupRecord(self._vhost.name, queue.name, queue.id)))

    def joined(self, session: object, subscription: SubscriptionRecord) -> None:
        """Add a member."""
        name = shared_queue_name(subscription.group, subscription.binding_key)
        self._members.setdefault(name, {})[session] = None

    def left(self, session: object, subscription: SubscriptionRecord) -> None:
        """Remove a member; delete the queue after the last one, unless it has other consumers."""
        name = shared_queue_name(subscription.group, subscription.binding_key)
        members = self._members.get(name, {})
        members.pop(session, None)
        if members:
            return
        self._members.pop(name, None)
        queue = self._vhost.queue_by_name.get(name)
        if queue is not None:
            self._vhost.delete_queue_if_done(queue)

    def is_abandoned(self, queue: "ConsumedQueue") -> bool:
        """Return whether a queue was created for a group that has no members, connected or not, and no consumers."""
        is_made = self._made.get(queue.name) == queue.id
        return is_made and queue.name not in self._members and not queue.consumer_count

    def deleted(self, queue: "QueueLike") -> None:
        """Forget a deleted queue."""
        if self._made.get(queue.name) == queue.id:
            self._forget(queue.name)

    def erasing(self) -> Iterator[None]:
        """Return the steps that forget all groups: the virtual host is deleted."""
        for name in drained(list(self._made)):
            self._forget(name)
            yield

    def release(self, host: "SessionHost") -> None:
        """Release the virtual host, which was deleted; ``host`` is there instead of it."""
        self._vhost = host

    def _forget(self, name: str) -> None:
        del self._made[name]
        self._journal.record(Removed(GroupRecord.kind, (self._vhost.name, name)))

    # Recovery

    def install(self, record: GroupRecord) -> None:
        """Restore the record that a queue was created for a group."""
        self._made[record.queue] = record.queue_id

    def resume(self, clock: "Clock") -> None:
        """Delete the queues of groups that no member rejoins in time; sessions may have ended with the broker."""
        for name, queue_id in list(self._made.items()):
            queue = self._vhost.queue_by_name.get(name)
            if queue is None or queue.id != queue_id:
                self._forget(name)
        if self._made:
            clock.call_later(_REJOIN_S, lambda: clock.background.add(self._deleting_abandoned()))

    def _deleting_abandoned(self) -> Iterator[None]:
        for name in drained(list(self._made)):
            queue = self._vhost.queue_by_name.get(name)
            if queue is not None:
                self._vhost.delete_queue_if_done(queue)
            yield
