"""The interface and the common state of queues and streams, which exchanges route to and listings show alike."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer, Subscriber
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.feature_dispatch import NO_FEATURES, dispatch_of
from gateway.kernel.queueing.scheduler import ConsumerScheduler

if TYPE_CHECKING:
    from gateway.kernel.budget import TurnBudget
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.settings.user_counters import ConsumerTally


class QueueLike(ConsumedQueue):
    """A queue or a stream of one virtual host. Owns its features and its ``consumers``.

    ``on_consumer`` is called with each consumer that is added (``True``) or removed. ``recipient_of`` returns the
    interceptors that stand before a consumer's subscriber; ``None`` while there are none. ``used_at_ms`` is the last
    declaration, get or cancelled consumer. ``user`` declared it; empty if unknown.
    """

    __slots__ = (
        "_counts_seen",
        "_feature_dispatch",
        "_had_news",
        "_journal",
        "_pauses",
        "consumer_tally",
        "consumers",
        "had_consumer",
        "on_consumer",
        "recipient_of",
        "used_at_ms",
        "user",
    )

    def __init__(
        self,
        vhost_name: str,
        name: str,
        journal: "Journal",
        consumers: ConsumerScheduler,
        id: int,
        is_durable: bool,
        is_auto_delete: bool,
        owner: object | None,
        arguments: Arguments | None,
    ) -> None:
        super().__init__(vhost_name, name, id, is_durable, is_auto_delete, owner, arguments)
        self._journal = journal
        self._feature_dispatch = NO_FEATURES
        self._pauses = 0
        self._counts_seen = (-1, 0, 0, 0)
        self._had_news = False
        self.consumers = consumers
        self.consumer_tally: ConsumerTally | None = None
        self.had_consumer = False
        self.on_consumer: Callable[[Consumer, bool], None] | None = None
        self.recipient_of: Callable[[Consumer], Subscriber] | None = None
        self.used_at_ms = journal.now_ms
        self.user = ""

    @property
    def budget(self) -> "TurnBudget":
        """The budget of the turn."""
        return self._journal.budget

    @property
    def clock(self) -> "Clock":
        """The clock for long work on the queue."""
        return self._journal.clock

    @property
    def is_stream(self) -> bool:
        """Whether it keeps the messages that are consumed."""
        return False

    # Counts, for listings

    @property
    def unsettled(self) -> int:
        """The number of messages with consumers."""
        return 0

    @property
    def delayed_count(self) -> int:
        """The number of delayed messages."""
        return 0

    @property
    def pending_dead_letter_count(self) -> int:
        """The number of pending dead letters: no target queue could take them."""
        return 0

    @property
    def disk_writes(self) -> int:
        """The number of messages written to the store, to survive a restart or to free memory."""
        raise NotImplementedError

    @property
    def disk_reads(self) -> int:
        """The number of waiting messages read back from the store."""
        return 0

    @property
    def lacks_capacity(self) -> bool:
        """Whether messages wait although there are consumers, because none of them has capacity."""
        raise NotImplementedError

    def has_news(self) -> bool:
        """Return whether a count differs from the last call, or differed at that call.

        A rate falls to zero only after two equal readings. It remembers what it saw, so only statistics call it, which
        look at each queue every few seconds.
        """
        total, ready, unsettled, stored = self._counts_seen
        had_news, self._had_news = self._had_news, False
        now_total, now_stored = self.counters.total(), self.disk_reads + self.disk_writes
        if total != now_total or ready != len(self) or unsettled != self.unsettled or stored != now_stored:
            self._counts_seen = (now_total, len(self), self.unsettled, now_stored)
            self._had_news = True
        return had_news or self._had_news

    # Life cycle

    @property
    def features(self) -> tuple[QueueFeature, ...]:
        """The features in use, in calling order."""
        return self._feature_dispatch.features

    def apply(self, features: tuple[QueueFeature, ...]) -> None:
        """Replace the features, as on a change of policy; a feature of the same type keeps its state."""
        earlier, self._feature_dispatch = self._feature_dispatch, dispatch_of(features)
        self._feature_dispatch.succeed(earlier)

    def close(self) -> None:
        """Mark the queue as deleted and end its features; the caller calls ``erase`` later."""
        self.is_deleted = True
        self.apply(())

    def erase(self) -> int:
        """Delete the messages of a deleted queue; return how many could be consumed."""
        raise NotImplementedError

    def flush(self) -> None:
        """Record the state that is recorded with a delay, such as offsets of consumers: the node stops."""

    def redeclared(self) -> None:
        """Restart the queue's lease on a repeated declaration, except for a quorum queue (R38)."""
        if self.arguments.get("x-queue-type") != "quorum":
            self.use()

    def use(self) -> None:
        """Restart the queue's lease after a declaration, a get or a cancelled consumer (R37, R38)."""
        self.used_at_ms = self._journal.now_ms
        self._feature_dispatch.used()

    # Messages in

    def offer(self, message: Message, *, was_delayed: bool = False) -> DeathReason | None:
        """Take in the message, or return why it was refused. A message that ``was_delayed`` is not delayed again."""
        raise NotImplementedError

    def offer_run(self, messages: list[Message]) -> bool:
        """Take in new messages with one header, which have no other queue, if none needs more than a place.

        Return ``False``, and take none, if each one is to be offered by itself. If it raises, it has taken none.
        """
        return False

    def refusal_of(self, message: Message) -> DeathReason | None:
        """Return why ``offer`` would refuse a message, without offering it; ``None`` if it would not."""
        return self._feature_dispatch.admit(message)

    def offer_due(self, message: Message) -> None:
        """Take in a message that an exchange delayed; it is not refused."""
        raise NotImplementedError

    def pause_dispatch(self) -> None:
        """Deliver nothing while messages are requeued in steps."""
        self._pauses += 1

    def resume_dispatch(self) -> None:
        """Resume delivery: all messages are requeued."""
        self._pauses -= 1
        self.dispatch()

    # Consumers

    @property
    def consumer_count(self) -> int:
        """The number of consumers."""
        return len(self.consumers)

    @property
    def is_unused(self) -> bool:
        """Whether an auto-delete queue can be deleted: it had a consumer and the last one is gone (R32)."""
        return self.had_consumer and not len(self.consumers)

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether the consumer gets messages while it has capacity."""
        return self.consumers.is_active(consumer)

    def consume(self, consumer: Consumer) -> None:
        """Add a consumer created for this queue; deliveries start with the next ``dispatch``.

        :raises Refused: if it cannot be added.
        """
        raise NotImplementedError

    def _consumed_from(self, consumer: Consumer) -> None:
        """Count an added consumer, and put the interceptors before it."""
        if self.recipient_of is not None:
            consumer.recipient = self.recipient_of(consumer)
        if self.consumer_tally is not None:
            self.consumer_tally.added(consumer.subscriber.origin.user)
        self.had_consumer = True
        self.used_at_ms = self._journal.now_ms
        if self.on_consumer is not None:
            self.on_consumer(consumer, True)

    def _consumed_less(self, consumer: Consumer) -> None:
        """Count a removed consumer."""
        if self.consumer_tally is not None:
            self.consumer_tally.removed(consumer.subscriber.origin.user)
        if self.on_consumer is not None:
            self.on_consumer(consumer, False)


def queues_with_news(queues: "Sequence[QueueLike]") -> list[QueueLike]:
    """Return those of some queues that have news; 10,000 without take two milliseconds."""
    return [queue for queue in queues if queue.has_news()]
