"""Subscriptions to topics that begin and end during a run, of MQTT sessions and STOMP clients.

A publish is promised to a subscription that was there all the time from its sending to its answer. One that began or
ended meanwhile may get it or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.simulation.publishes import Fate, Published
from gateway.simulation.topics import matches


@dataclass(slots=True, eq=False)
class TopicSubscription:
    """A pattern of routing keys whose messages go to a place, except those of the publisher ``not_from``."""

    place: str
    pattern: str
    not_from: str = ""
    is_promised: bool = False

    def takes(self, published: Published) -> bool:
        """Return whether the subscription matches a publish."""
        key = published.topic_key
        return key is not None and published.publisher != self.not_from and matches(self.pattern, key)


class TopicSubscriptions:
    """Owns the subscriptions of a run. ``published`` has all publishes of the run, by body."""

    def __init__(self, published: Mapping[str, Published]) -> None:
        self._published = published
        self._all: list[TopicSubscription] = []

    def open(self, place: str, pattern: str, *, not_from: str = "") -> TopicSubscription:
        """Add a subscription that a client requests, or return the one that is there."""
        for each in self._all:
            if (each.place, each.pattern) == (place, pattern):
                return each
        subscription = TopicSubscription(place, pattern, not_from)
        self._all.append(subscription)
        for published in self._undecided(subscription):
            published.perhaps.add(place)
        return subscription

    def close(self, subscription: TopicSubscription) -> None:
        """End the promise: a client asks for the end of the subscription, or loses it."""
        subscription.is_promised = False
        for published in self._undecided(subscription):
            published.places.discard(subscription.place)
            published.perhaps.add(subscription.place)

    def remove(self, subscription: TopicSubscription) -> None:
        """Remove a subscription whose end was confirmed: it gets no publish from now on."""
        if subscription in self._all:
            self._all.remove(subscription)

    def published(self, published: Published) -> None:
        """Add the places of the subscriptions that match a new publish."""
        for subscription in self._all:
            if subscription.takes(published):
                (published.places if subscription.is_promised else published.perhaps).add(subscription.place)

    def _undecided(self, subscription: TopicSubscription) -> list[Published]:
        return [
            published
            for published in self._published.values()
            if published.fate is Fate.UNKNOWN and subscription.takes(published)
        ]
