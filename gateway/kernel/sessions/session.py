"""An MQTT session: its subscriptions, its queues and its unfinished deliveries.

Messages of a session wait in ordinary queues, so operators see them, policies apply, and they survive a restart. There
is one queue for its subscriptions of QoS 0, one for those of QoS 1 and 2, and one for each shared subscription group,
which belongs to all members of the group.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.clock import drained
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.sessions import SessionRecord, SubscriptionRecord
from gateway.kernel.messages.message import Arguments
from gateway.kernel.sessions.groups import Groups, shared_queue_name
from gateway.kernel.sessions.qos2_state import Qos2State
from gateway.kernel.sessions.subscriptions import Subscriptions

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import ConsumedQueue
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.sessions.host import SessionHost

#: The expiry of a session that never ends by itself, in seconds (MQTT 5.0, 3.1.2.11.2).
NEVER_S: Final = 0xFFFFFFFF

#: The prefix of keys that the server publishes about itself (MQTT 5.0, 4.7.2).
SERVER_PREFIX: Final = "$SYS."

#: What a session holds that holds nothing, as most. It cannot be written to: another client would get the message.
_NOTHING_HELD: "Final[Mapping[int, tuple[ConsumedQueue, QueuedMessage]]]" = MappingProxyType({})


class Holder(Protocol):
    """The connection of a session's client."""

    def displaced(self) -> None:
        """Disconnect, because the same client connected again; close the session before returning (MQTT-3.1.4-3)."""
        ...

    def force_close(self, reason: str) -> None:
        """Disconnect on request of an operator, and send the client the reason."""
        ...


class Session:
    """One client's session in one virtual host. ``user`` is empty until the first login sets it.

    A durable session was created to outlive its first connection, and survives a restart; other sessions own their
    queues exclusively. ``held`` are messages of groups that were sent exactly once and are reserved for this client,
    even while it is disconnected (MQTT-4.8.2-4), by packet identifier. ``subscribers`` are the sessions of the virtual
    host that may have queues; a session adds itself when it declares its first. Most clients of a fleet neither
    subscribe nor deliver exactly once, so what is needed for that is made at the first use: it takes 0.2 KiB.
    """

    __slots__ = (
        "_groups",
        "_journal",
        "_qos2_state",
        "_subscribers",
        "_subscriptions",
        "_vhost",
        "client_id",
        "expiry_s",
        "held",
        "holder",
        "is_durable",
        "limits",
        "user",
    )

    def __init__(
        self,
        vhost: "SessionHost",
        groups: "Groups",
        journal: "Journal",
        client_id: str,
        expiry_s: int,
        limits: "dict[int, Arguments]",
        subscribers: "dict[Session, None]",
        *,
        is_durable: bool,
        user: str = "",
    ) -> None:
        self._vhost = vhost
        self._groups = groups
        self._journal = journal
        self._subscribers = subscribers
        self.client_id = client_id
        self.expiry_s = expiry_s
        self.is_durable = is_durable
        self.user = user
        self.limits = limits
        self.holder: Holder | None = None
        self._subscriptions: Subscriptions | None = None
        self._qos2_state: Qos2State | None = None
        self.held = _NOTHING_HELD

    def belongs_to(self, user: str) -> bool:
        """Return whether a user may take over the session: its own user, or any user while it has none."""
        return self.user in ("", user)

    @property
    def subscriptions(self) -> Subscriptions:
        """The subscriptions, to be changed or matched; made at the first use."""
        if self._subscriptions is None:
            self._subscriptions = Subscriptions()
        return self._subscriptions

    @property
    def subscribed(self) -> tuple[SubscriptionRecord, ...]:
        """The present subscriptions, to be read."""
        return () if self._subscriptions is None else tuple(self._subscriptions)

    @property
    def subscription_count(self) -> int:
        """The number of its subscriptions."""
        return 0 if self._subscriptions is None else len(self._subscriptions)

    @property
    def qos2_state(self) -> Qos2State:
        """The packet identifiers of unfinished deliveries; made at the first use."""
        if self._qos2_state is None:
            record = self._journal.record if self.is_durable else None
            self._qos2_state = Qos2State(self._vhost.name, self.client_id, record)
        return self._qos2_state

    @property
    def remembered(self) -> set[int]:
        """The positions of messages that an earlier connection sent and whose identifiers are kept."""
        return set() if self._qos2_state is None else set(self._qos2_state.remembered)

    # Queues

    def queue_name(self, subscription: SubscriptionRecord) -> str:
        """Return the name of the queue of a subscription."""
        if subscription.group:
            return shared_queue_name(subscription.group, subscription.binding_key)
        return self.own_queue_name(level_of(subscription.qos))

    def own_queue_name(self, level: int) -> str:
        """Return RabbitMQ's name for the queue of a client's QoS 0 subscriptions, or of the others."""
        return f"mqtt-subscription-{self.client_id}qos{level}"

    def queues(self) -> "list[QueueLike]":
        """Return the existing queues of the session."""
        names = [self.queue_name(subscription) for subscription in self.subscribed if subscription.group]
        shared = [queue for name in dict.fromkeys(names) if (queue := self._queue(name)) is not None]
        return self.own_queues() + shared

    def shared_by_queue_name(self) -> dict[str, SubscriptionRecord]:
        """Return, for each queue shared with a group, the first subscription that uses it."""
        shared = [subscription for subscription in self.subscribed if subscription.group]
        return {self.queue_name(subscription): subscription for subscription in reversed(shared)}

    def own_queues(self) -> "list[QueueLike]":
        """Return the existing queues that are not shared with a group."""
        return [queue for level in (0, 1) if (queue := self._queue(self.own_queue_name(level))) is not None]

    def queue_of(self, qos: int) -> "QueueLike | None":
        """Return the session's own queue for messages of a QoS, if it exists."""
        return self._queue(self.own_queue_name(level_of(qos)))

    def _queue(self, name: str) -> "QueueLike | None":
        """Return a queue unless another owner has taken the name."""
        queue = self._vhost.queue_by_name.get(name)
        return queue if queue is not None and queue.owner in (None, self) else None

    def owns(self, queue: "ConsumedQueue") -> bool:
        """Return whether a queue belongs to this session only."""
        return queue.name in (self.own_queue_name(0), self.own_queue_name(1))

    def is_at_most_once(self, queue: "ConsumedQueue") -> bool:
        """Return whether it is the queue of the QoS 0 subscriptions."""
        return queue.name == self.own_queue_name(0)

    def _declare(self, subscription: SubscriptionRecord) -> "QueueLike":
        """Return or create the queue of a subscription. :raises ResourceLocked: when it has another owner."""
        name = self.queue_name(subscription)
        self._subscribers[self] = None
        queue = self._vhost.queue_by_name.get(name)
        if queue is not None:
            queue.require_owner(self)
            return queue
        is_own = not self.is_durable and not subscription.group
        arguments = self.limits[level_of(subscription.qos)]
        if self._vhost.queues.default_type == "stream":  # delivered messages must be removed
            arguments = {**arguments, "x-queue-type": "classic"}
        owner = self if is_own else None
        queue = self._vhost.declare_queue(name, is_durable=True, owner=owner, arguments=arguments, user=self.user)
        if subscription.group:
            self._groups.made(queue)
        return queue

    # Subscriptions

    def subscribe(self, exchange: "Exchange", subscription: SubscriptionRecord) -> "QueueLike":
        """Add or update a subscription; return its queue.

        :raises Refused: when the queue cannot be declared.
        """
        queue = self._declare(subscription)
        self._bind(exchange, queue, subscription)
        earlier = self.subscriptions.get(subscription.filter)
        self.subscriptions.put(subscription)
        if earlier is not None and self.queue_name(earlier) != queue.name:
            self._unbind(exchange, earlier)
        if self.is_durable and subscription != earlier:
            self._journal.record(Put(subscription))
        return queue

    def rebind(self, exchange: "Exchange", subscription: SubscriptionRecord) -> None:
        """Replace the subscription of the same filter, and bind its queue; the former binding stays.

        :raises Refused: when the queue cannot be declared.
        """
        self._bind(exchange, self._declare(subscription), subscription)
        earlier = self.subscriptions.get(subscription.filter)
        self.subscriptions.put(subscription)
        if self.is_durable and subscription != earlier:
            self._journal.record(Put(subscription))

    def unsubscribe(self, exchange: "Exchange", filter: str) -> SubscriptionRecord | None:
        """Remove a subscription and return it. Waiting messages are still delivered."""
        subscription = self.subscriptions.remove(filter)
        if subscription is not None:
            if self.is_durable:
                self._journal.record(Removed(subscription.kind, subscription.key))
            if not subscription.group:
                self._unbind(exchange, subscription)
        return subscription

    def restore_queues(self, exchange: "Exchange") -> None:
        """Declare queues again that an operator deleted while the client was disconnected."""
        names = self._vhost.queue_by_name
        for subscription in [wanted for wanted in self.subscribed if self.queue_name(wanted) not in names]:
            self._bind(exchange, self._declare(subscription), subscription)

    def _bind(self, exchange: "Exchange", queue: "QueueLike", subscription: SubscriptionRecord) -> None:
        """Bind the queue, except for topics of the server itself, which only the server publishes."""
        if not subscription.binding_key.startswith(SERVER_PREFIX):
            self._vhost.bind(exchange, queue, subscription.binding_key, user=self.user)

    def _unbind(self, exchange: "Exchange", subscription: SubscriptionRecord) -> None:
        """Remove the binding of a subscription, unless another subscription needs it."""
        queue = self._vhost.queue_by_name.get(self.queue_name(subscription))
        if queue is not None and not self.subscriptions.has_key(subscription.binding_key, subscription.qos > 0):
            self._vhost.unbind(exchange, queue, subscription.binding_key)

    # Messages of groups

    def hold(self, packet_id: int, queue: "ConsumedQueue", entry: "QueuedMessage") -> None:
        """Reserve a message of a group that was sent exactly once for this client."""
        held = self.held if isinstance(self.held, dict) else {}
        held[packet_id] = (queue, entry)
        self.held = held

    def take_held(self) -> "Mapping[int, tuple[ConsumedQueue, QueuedMessage]]":
        """Return the messages that are reserved, and reserve them no more."""
        held, self.held = self.held, _NOTHING_HELD
        return held

    # Records

    @property
    def is_bare(self) -> bool:
        """Whether nothing belongs to it: it is not recorded, and has no queue, subscription or identifier.

        A queue of its name may have come with definitions.
        """
        is_unused = self._subscriptions is None and self._qos2_state is None and not self.held
        return is_unused and not self.is_durable and self not in self._subscribers and not self.own_queues()

    def record(self, ended_at_ms: int) -> None:
        """Record the session; ``ended_at_ms`` is 0 while the client is connected."""
        if self.is_durable:
            record = SessionRecord(self._vhost.name, self.client_id, self.expiry_s, ended_at_ms, self.user)
            self._journal.record(Put(record))

    def erasing(self, count_dropped: Callable[[int], None]) -> Iterator[None]:
        """Delete the session's own queues in steps; queues of groups remain for their other members.

        ``count_dropped`` is called with the number of messages that each queue dropped.
        """
        for queue in self.own_queues():
            count_dropped(queue.counters.dropped)
            yield from self._vhost.queues.deleting(queue)
        self._vhost.release(self)  # clears the record of its owned queues

    @property
    def size(self) -> int:
        """The number of its subscriptions and unfinished deliveries."""
        unfinished = 0 if self._qos2_state is None else self._qos2_state.count
        return self.subscription_count + len(self.held) + unfinished

    def forgetting(self) -> Iterator[None]:
        """Return the steps that delete the records of its unfinished deliveries and subscriptions, then its own.

        After a crash in between the session exists, and is ended again.
        """
        if self._qos2_state is not None:
            yield from self._qos2_state.forgetting()
        held = list(self.held.items())
        self.held = _NOTHING_HELD
        for packet_id, (queue, entry) in drained(held):  # no other client may get them (MQTT-4.8.2-5)
            self.qos2_state.abort(packet_id)
            queue.accept(entry)
            yield
        if self.is_durable:
            for subscription in self.subscribed:
                self._journal.record(Removed(subscription.kind, subscription.key))
                yield
            self._journal.record(Removed(SessionRecord.kind, (self._vhost.name, self.client_id)))


def level_of(qos: int) -> int:
    """Return the session's queue for a QoS: 0 for QoS 0, 1 for QoS 1 and 2."""
    return 1 if qos else 0
