"""Drops: the removal of messages that no consumer gets, because they expired, overflowed, were rejected or purged."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from gateway.kernel.queueing.feature_dispatch import NO_FEATURES
from gateway.kernel.queueing.purging import removal_steps

if TYPE_CHECKING:
    from gateway.kernel.backlog.waiting import Waiting
    from gateway.kernel.counters import Counters
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.death_records import DeathReason
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage


class Drops:
    """Drops messages of one queue: removes them from the store, counts them, and reports them to its ``features``.

    It refers to the parts of its queue and not to the queue, so that a deleted queue leaves no cycle.
    """

    __slots__ = ("_counters", "_journal", "_ready", "features")

    def __init__(self, counters: "Counters", journal: "Journal", ready: "Waiting") -> None:
        self._counters = counters
        self._journal = journal
        self._ready = ready
        self.features = NO_FEATURES

    def discard(self, entry: "QueuedMessage", reason: "DeathReason") -> None:
        """Drop a message that was taken from the queue: now, or in a later turn if a feature needs that."""
        self._counters.count_drop(reason.wire_name)
        features = self.features
        if features.postponing and (postpone := features.postponer(entry.message)) is not None:
            postpone(partial(self._discard_now, entry, reason))
        else:
            self._discard_now(entry, reason)

    def _discard_now(self, entry: "QueuedMessage", reason: "DeathReason") -> None:
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)
        self.features.dropped(entry.message, reason)

    def discard_if_expired(self, seen: "QueuedMessage") -> bool:
        """Drop a waiting message if it has expired; return whether it has."""
        reason = self.features.due(seen)
        if reason is not None and (entry := self._ready.take_out(seen)) is not None:
            self.discard(entry, reason)
        return reason is not None

    def drop_arriving(self, message: "Message", reason: "DeathReason") -> None:
        """Drop a message that the queue did not take in, though its publisher counts on it."""
        self._counters.count_drop(reason.wire_name)
        self.features.kept_out(message, reason)

    def drop_refused(self, message: "Message", reason: "DeathReason") -> None:
        """Drop a message that was refused, now or in a later turn: its publisher does not count on it."""
        self._counters.count_drop(reason.wire_name)
        postpone = self.features.postponer(message) or _now
        postpone(partial(self._report_dropped, message, reason))

    def _report_dropped(self, message: "Message", reason: "DeathReason") -> None:
        self.features.dropped(message, reason)

    def purge(self) -> int:
        """Remove every ready message; return how many there were (R39).

        The queue is empty at once. The store removes a large number of messages in later turns.
        """
        count = len(self._ready)
        self._journal.clock.background.add(self.purge_steps())
        return count

    def purge_steps(self) -> Iterator[None]:
        """Remove every ready message now; return the steps in which the store removes them. None is dead-lettered."""
        self.features.purged()
        return removal_steps(self._journal, *self._ready.clear())


def _now(call: Callable[[], None]) -> None:
    call()
