"""The features of a queue as one: asked at each moment like a single feature, they answer together."""

from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import DeliveryOutcome, Queue


class FeatureDispatch:
    """The features of one queue, a tuple of those that do something for each moment of a message's stay.

    The methods are those of ``QueueFeature``. The tuples of the frequent moments are public: a queue looks whether they
    are empty before it asks, so that a moment nobody cares about costs nothing.
    """

    __slots__ = (
        "_refusing",
        "_restoring",
        "_retrying",
        "_returning",
        "_showing",
        "_using",
        "accepting",
        "admitting",
        "diverting",
        "dropping",
        "due_asking",
        "enqueuing",
        "features",
        "settling",
        "taking",
    )

    def __init__(self, features: tuple[QueueFeature, ...] = ()) -> None:
        self.features = features
        self.diverting = overriding(features, "diverts")
        self.admitting = overriding(features, "admit")
        self.accepting = overriding(features, "accepted")
        self.settling = overriding(features, "settled")
        self.enqueuing = overriding(features, "enqueued")
        self.due_asking = overriding(features, "due")
        self.taking = overriding(features, "taken")
        self.dropping = overriding(features, "dropped")
        self._refusing = overriding(features, "refused")
        self._restoring = overriding(features, "restored")
        self._returning = overriding(features, "returning")
        self._showing = overriding(features, "shown")
        self._retrying = overriding(features, "retries")
        self._using = overriding(features, "used")

    def succeed(self, queue: "Queue", earlier: "FeatureDispatch") -> None:
        """Take the place of others; features that were there in kind keep what they know."""
        for feature in earlier.features:
            feature.retired(queue)
        earlier_by_type = {type(feature): feature for feature in earlier.features}
        for feature in self.features:
            if type(feature) in earlier_by_type:
                feature.inherit(earlier_by_type[type(feature)])
        for feature in self.features:
            feature.fitted(queue)

    def diverts(self, queue: "Queue", message: "Message") -> bool:
        """Return whether a message goes another way."""
        return any(feature.diverts(queue, message) for feature in self.diverting)

    def admit(self, queue: "Queue", message: "Message") -> DeathReason | None:
        """Return why a message must stay out, or ``None``."""
        for feature in self.admitting:
            if (refusal := feature.admit(queue, message)) is not None:
                return refusal
        return None

    def refused(self, queue: "Queue", message: "Message", reason: DeathReason) -> None:
        """A message stays out."""
        for feature in self._refusing:
            feature.refused(queue, message, reason)

    def returning(self, queue: "Queue", entry: "QueuedMessage") -> DeathReason | None:
        """Return why a message must not come back, or ``None``."""
        for feature in self._returning:
            if (reason := feature.returning(queue, entry)) is not None:
                return reason
        return None

    def accepted(self, queue: "Queue", message: "Message", position: int | None) -> None:
        """The queue took a message that is new to it."""
        for feature in self.accepting:
            feature.accepted(queue, message, position)

    def enqueued(self, queue: "Queue", entry: "QueuedMessage") -> None:
        """A message took its place."""
        for feature in self.enqueuing:
            feature.enqueued(queue, entry)

    def restored(self, queue: "Queue", change: "Enqueued") -> None:
        """Recovery gave a message its place back."""
        for feature in self._restoring:
            feature.restored(queue, change)

    def due(self, queue: "Queue", entry: "QueuedMessage") -> DeathReason | None:
        """Return why a message must not be delivered any more, or ``None``."""
        for feature in self.due_asking:
            if (reason := feature.due(queue, entry)) is not None:
                return reason
        return None

    def shown(self, queue: "Queue", entry: "QueuedMessage") -> "Message":
        """Return the message of a delivery as the consumer is to see it: what is stored stays as it was published."""
        message = entry.message
        if entry.deliveries:
            for feature in self._showing:
                message = feature.shown(queue, entry, message)
        return message

    def settled(self, queue: "Queue", entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """A delivery is being concluded."""
        for feature in self.settling:
            feature.settled(queue, entry, outcome)

    def taken(self, queue: "Queue") -> None:
        """The head was handed out."""
        for feature in self.taking:
            feature.taken(queue)

    def retries(self, queue: "Queue", entry: "QueuedMessage") -> bool:
        """Return whether a rejected message is kept for another try."""
        return any(feature.retries(queue, entry) for feature in self._retrying)

    def dropped(self, queue: "Queue", message: "Message", reason: DeathReason) -> None:
        """A message left, or was kept out."""
        for feature in self.dropping:
            feature.dropped(queue, message, reason)

    def used(self, queue: "Queue") -> None:
        """Somebody had to do with the queue itself."""
        for feature in self._using:
            feature.used(queue)


def overriding(features: tuple[QueueFeature, ...], moment: str) -> tuple[QueueFeature, ...]:
    """Return the features that do something at this moment."""
    return tuple(f for f in features if getattr(type(f), moment) is not getattr(QueueFeature, moment))


#: Those of any queue without features. One for all of them, it is always near at hand.
NO_FEATURES: Final = FeatureDispatch()
