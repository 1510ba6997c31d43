"""Delayed messages: on request of the publisher (``x-delay``), or between two delivery attempts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.messages.bounds import LONGEST_MS
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.clock import Clock
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue

#: The maximum number of digits in a delay.
_MOST_DIGITS: Final = 18


def delay_ms(message: Message) -> int:
    """Return the delay that a publisher requested for a message, in milliseconds; 0 for none.

    Like RabbitMQ's plugin, which defines this header, ignore values that are not a positive number of milliseconds or
    exceed ten years. Strings of digits are accepted, because MQTT and STOMP clients cannot send numbers in headers.
    """
    delay = message.headers.get("x-delay")
    if isinstance(delay, str) and delay.isascii() and delay.isdigit() and len(delay) <= _MOST_DIGITS:
        delay = int(delay)
    if isinstance(delay, bool) or not isinstance(delay, int):
        return 0
    return delay if 0 < delay <= LONGEST_MS else 0


def delaying(queue: "Queue", context: "FeatureContext") -> "Delaying | None":
    """Return the feature if the queue's settings require delays of either kind."""
    delays_arrivals = queue.settings.is_on("delayed-delivery")
    retry_delays = queue.settings.value("retry-delays")
    retries = tuple(delay for delay in retry_delays if isinstance(delay, int)) if isinstance(retry_delays, list) else ()
    if not (delays_arrivals or retries):
        return None
    place = TracedPlace(queue.name)
    return Delaying(
        queue, context.clock, context.trace_events, place, delays_arrivals=delays_arrivals, retry_delays_ms=retries
    )


class Delaying(QueueFeature):
    """Delays messages that arrive with a delay, and rejected messages while attempts are left.

    A delayed message is released at its time even if the queue has lost the feature by then. The n-th of
    ``retry_delays_ms`` follows the n-th return of a message; after the last one a rejection is final. ``release`` is
    called with a message that is due; by default its queue enqueues it. Events have the ``place``.
    """

    def __init__(
        self,
        queue: "Queue",
        clock: "Clock",
        trace_events: "TraceEvents",
        place: TracedPlace,
        *,
        delays_arrivals: bool,
        retry_delays_ms: tuple[int, ...] = (),
        release: "Callable[[QueuedMessage], DeathReason | None] | None" = None,
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._trace_events = trace_events
        self._place = place
        self._delays_arrivals = delays_arrivals
        self._retry_delays_ms = retry_delays_ms
        self._release = release

    def attached(self) -> None:
        """Set how messages that are due are released, before recovery restores any."""
        self._queue.ensure_delayed(self._release or self._released)

    def diverts(self, message: Message) -> bool:
        """Delay a message whose publisher requested it."""
        if not self._delays_arrivals or not (delay := delay_ms(message)):
            return False
        due_at_ms = self._clock.wall_ms() + delay
        entry = self._queue.ensure_delayed().hold(message, due_at_ms)
        self._trace_events.delayed(self._place, message, entry.position, due_at_ms)
        return True

    def retries(self, entry: "QueuedMessage") -> bool:
        """Delay a rejected message until its next attempt."""
        if entry.deliveries >= len(self._retry_delays_ms):
            return False
        due_at_ms = self._clock.wall_ms() + self._retry_delays_ms[entry.deliveries]
        self._queue.ensure_delayed().requeue_delayed(entry, due_at_ms)
        self._trace_events.delayed(self._place, entry.message, entry.position, due_at_ms)
        return True

    def _released(self, entry: "QueuedMessage") -> DeathReason | None:
        """Let the queue enqueue a message that is due; return why it has to wait on."""
        position = entry.position if entry.deliveries else 0
        refusal = self._queue.ensure_delayed().release(entry)
        if position:  # another message gets a new position, and an event with it
            self._trace_events.due(self._place, entry.message, position, None)
        return refusal
