"""Calls all features of a queue at each step of a message's life, and combines their results."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature, Rejection

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome


class FeatureDispatch:
    """The features of one queue, as one tuple per method of ``QueueFeature`` with the features that override it.

    The methods are those of ``QueueFeature``. The tuples of frequent calls are public: a queue checks that they are not
    empty before it calls, so that an unused method costs nothing.
    """

    __slots__ = (
        "_admitting",
        "_arriving",
        "_holding",
        "_purging",
        "_refusing",
        "_retrying",
        "_returning",
        "_showing",
        "_using",
        "accepting",
        "diverting",
        "dropping",
        "due_asking",
        "enqueuing",
        "features",
        "guarding",
        "postponing",
        "restoring",
        "sees_arrivals",
        "settling",
        "taking",
    )

    def __init__(self, features: tuple[QueueFeature, ...] = ()) -> None:
        self.features = features
        self.diverting = overriding(features, "diverts")
        self._admitting = overriding(features, "admit")
        self._arriving = overriding(features, "arrives")
        self.guarding = self._admitting + self._arriving
        self.accepting = overriding(features, "accepted")
        self.settling = overriding(features, "settled")
        self.enqueuing = overriding(features, "enqueued")
        self.due_asking = overriding(features, "due")
        self.taking = overriding(features, "taken")
        self.postponing = overriding(features, "postponer")
        self.dropping = overriding(features, "dropped")
        self._refusing = overriding(features, "refused")
        self.restoring = overriding(features, "restored")
        self._returning = overriding(features, "returning")
        self._showing = overriding(features, "shown")
        self._retrying = overriding(features, "retries")
        self._using = overriding(features, "used")
        self._purging = overriding(features, "purged")
        self._holding = overriding(features, "holding")
        self.sees_arrivals = bool(self.diverting or self.guarding or self.accepting or self.enqueuing)

    def succeed(self, earlier: "FeatureDispatch") -> None:
        """Replace an earlier set of features; a feature of the same type inherits the state of its predecessor.

        A feature that is in both sets is not called.
        """
        former = [feature for feature in earlier.features if feature not in self.features]
        new = [feature for feature in self.features if feature not in earlier.features]
        for feature in former:
            feature.detached()
        former_by_type = {type(feature): feature for feature in former}
        for feature in new:
            if type(feature) in former_by_type:
                feature.inherit(former_by_type[type(feature)])
        for feature in new:
            feature.attached()

    def diverts(self, message: "Message") -> bool:
        """Return whether a feature takes a message instead of the queue."""
        return any(feature.diverts(message) for feature in self.diverting)

    def admit(self, message: "Message") -> DeathReason | None:
        """Return why a message must be refused, or ``None``."""
        for feature in self._admitting:
            if (refusal := feature.admit(message)) is not None:
                return refusal
        return None

    def keeps_out(self, message: "Message") -> Rejection | DeathReason | None:
        """Return whether an arriving message is rejected, or dropped for a reason."""
        if (refusal := self.admit(message)) is not None:
            return Rejection(refusal)
        for feature in self._arriving:
            if (decision := feature.arrives(message)) is not None:
                return decision
        return None

    def refused(self, message: "Message", reason: DeathReason) -> None:
        """Report a refused message."""
        for feature in self._refusing:
            feature.refused(message, reason)

    def returning(self, entry: "QueuedMessage") -> DeathReason | None:
        """Return why a returned message must be dropped, or ``None``."""
        for feature in self._returning:
            if (reason := feature.returning(entry)) is not None:
                return reason
        return None

    def accepted(self, message: "Message", position: int | None) -> None:
        """Report a message new to the queue."""
        for feature in self.accepting:
            feature.accepted(message, position)

    def accepted_early(self, message: "Message") -> None:
        """Report a message new to the queue, whose position is not known yet, to the features that do not need it."""
        for feature in self.accepting:
            if not feature.needs_position:
                feature.accepted(message, None)

    def placed(self, message: "Message", position: int) -> None:
        """Report the position of a message that was reported early to the features that need it."""
        for feature in self.accepting:
            if feature.needs_position:
                feature.accepted(message, position)

    def enqueued(self, entry: "QueuedMessage") -> None:
        """Report a message added to the ready messages."""
        for feature in self.enqueuing:
            feature.enqueued(entry)

    def restored(self, change: "Enqueued") -> None:
        """Report a message restored by recovery."""
        for feature in self.restoring:
            feature.restored(change)

    def due(self, entry: "QueuedMessage") -> DeathReason | None:
        """Return why a message must not be delivered, or ``None``."""
        for feature in self.due_asking:
            if (reason := feature.due(entry)) is not None:
                return reason
        return None

    def shown(self, entry: "QueuedMessage") -> "Message":
        """Return the message as the consumer gets it; the stored message does not change."""
        message = entry.message
        if entry.deliveries:
            for feature in self._showing:
                message = feature.shown(entry, message)
        return message

    def settled(self, entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """Report a settled delivery."""
        for feature in self.settling:
            feature.settled(entry, outcome)

    def taken(self) -> None:
        """Report that the head was taken."""
        for feature in self.taking:
            feature.taken()

    def retries(self, entry: "QueuedMessage") -> bool:
        """Return whether a rejected message is kept for another attempt."""
        return any(feature.retries(entry) for feature in self._retrying)

    def postponer(self, message: "Message") -> Callable[[Callable[[], None]], None] | None:
        """Return what makes the drop of a message in a later turn, or ``None``."""
        for feature in self.postponing:
            if (postpone := feature.postponer(message)) is not None:
                return postpone
        return None

    def dropped(self, message: "Message", reason: DeathReason) -> None:
        """Report a message that was removed, or refused."""
        for feature in self.dropping:
            feature.dropped(message, reason)

    def kept_out(self, message: "Message", reason: DeathReason) -> None:
        """Report a message that was dropped before it was in the queue."""
        for feature in self.dropping:
            feature.kept_out(message, reason)

    def purged(self) -> None:
        """Report that the ready messages are removed on request."""
        for feature in self._purging:
            feature.purged()

    def holding(self) -> None:
        """Report that the queue can hold messages back from now on."""
        for feature in self._holding:
            feature.holding()

    def used(self) -> None:
        """Report that a client used the queue itself."""
        for feature in self._using:
            feature.used()


def overriding(features: tuple[QueueFeature, ...], method: str) -> tuple[QueueFeature, ...]:
    """Return the features that override this method."""
    return tuple(feature for feature in features if feature.overrides(method))


#: Shared by all queues without features, so that it stays in the processor's cache.
NO_FEATURES: Final = FeatureDispatch()


def dispatch_of(features: tuple[QueueFeature, ...]) -> FeatureDispatch:
    """Return the dispatch of these features; queues without features share one."""
    return FeatureDispatch(features) if features else NO_FEATURES
