"""Feeds of the node's events, each for one reader of the API."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gateway.kernel.events import Event
from gateway.kernel.vhosts.event_listeners import EventListeners

#: Events that wait for a reader; more replace the oldest.
MOST_WAITING: Final = 2000


class Feed:
    """The events since the last call of ``take``. A reader that falls behind gets a count of the lost ones."""

    def __init__(self, listeners: EventListeners, wall_ms: Callable[[], int], most: int = MOST_WAITING) -> None:
        self._listeners = listeners
        self._wall_ms = wall_ms
        self._waiting: deque[tuple[int, Event]] = deque()
        self._most = most
        self._lost = 0
        self._add = self._collect  # one object, by which it is removed
        listeners.observe(self._add)

    def take(self) -> Iterator[Mapping[str, Any]]:
        """Yield the waiting events with RabbitMQ's names of fields, oldest first."""
        lost, self._lost = self._lost, 0
        if lost:
            yield {"event": "events.lost", "timestamp_in_ms": self._wall_ms(), "count": lost}
        while self._waiting:
            at_ms, event = self._waiting.popleft()
            subject = {"name": event.subject, "vhost": event.vhost}
            named = {name: value for name, value in subject.items() if value}
            yield {"event": event.name, "timestamp_in_ms": at_ms, **named, **event.details}

    def close(self) -> None:
        """Stop collecting events."""
        self._listeners.forget(self._add)
        self._waiting.clear()

    def _collect(self, event: Event) -> None:
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append((self._wall_ms(), event))
