"""Exchange interceptors that delay or deduplicate publishes.

Two exchange types of RabbitMQ plugins are ordinary exchanges with an interceptor: ``x-delayed-message`` routes by its
``x-delayed-type``, ``x-message-deduplication`` as a fanout. The argument ``x-message-deduplication`` adds an
interceptor to an exchange of any type.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.features.deduplication_cache import DEFAULT_SIZE, DeduplicationCache, positive
from gateway.kernel.features.deduplication_caches import EXCHANGE, DeduplicationCaches
from gateway.kernel.features.delaying import Delaying, delay_ms
from gateway.kernel.journal.records.topology import ExchangeRecord
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.queue import Queue

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.routing.binding import Binding

DELAYED: Final = "x-delayed-message"
DEDUPLICATED: Final = "x-message-deduplication"


def routing_type(type: str, arguments: Arguments) -> str:
    """Return the exchange type that routes for a declared type.

    :raises PreconditionFailed: when a delayed exchange does not name another type.
    """
    if type == DEDUPLICATED:
        return "fanout"
    if type != DELAYED:
        return type
    routing = arguments.get("x-delayed-type")
    if not isinstance(routing, str) or routing in (DELAYED, DEDUPLICATED):
        raise PreconditionFailed("Invalid argument, 'x-delayed-type' must be an existing exchange type")
    return routing


def holds_messages(type: str) -> bool:
    """Return whether exchanges of this type store messages."""
    return type == DELAYED


def require_valid_interceptor(type: str, arguments: Arguments) -> None:
    """Validate the arguments of an interceptor. :raises PreconditionFailed: with the text of RabbitMQ's plugin."""
    deduplicates = arguments.get(DEDUPLICATED, False)
    if not isinstance(deduplicates, bool):
        raise PreconditionFailed(f"Invalid argument, '{DEDUPLICATED}' must be a boolean")
    if "x-cache-size" in arguments or type == DEDUPLICATED:
        _require_positive(arguments, "x-cache-size", "Missing or invalid argument")
    if "x-cache-ttl" in arguments:
        _require_positive(arguments, "x-cache-ttl", "Invalid argument")
    if arguments.get("x-cache-persistence", "memory") not in ("memory", "disk"):
        raise PreconditionFailed("Invalid argument, 'x-cache-persistence' must be either 'memory' or 'disk'")


def _require_positive(arguments: Arguments, name: str, complaint: str) -> None:
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise PreconditionFailed(f"{complaint}, '{name}' must be an integer greater than 0")


class DelayingDeduplicator:
    """An interceptor that delays messages and drops repeated ones.

    ``waiting`` is the unnamed queue of delayed messages, ``None`` if nothing is delayed.
    """

    __slots__ = ("_deduplication_cache", "_discard_queue", "_events", "_forget", "_place", "waiting")

    def __init__(
        self,
        waiting: Queue | None,
        deduplication_cache: DeduplicationCache | None,
        discard_queue: Queue,
        forget: Callable[[], None],
        events: "TraceEvents",
        place: TracedPlace,
    ) -> None:
        self.waiting = waiting
        self._deduplication_cache = deduplication_cache
        self._discard_queue = discard_queue
        self._forget = forget
        self._events = events
        self._place = place

    def takes(self, message: Message) -> Queue | None:
        """Return the queue that gets a message instead of its routes; ``None`` to route it as usual."""
        if self._deduplication_cache is not None and self._deduplication_cache.is_repeated(message):
            return self._discard_queue
        return self._delaying_queue(message)

    def would_take(self, message: Message) -> Queue | None:
        """Return the answer of ``takes``, without remembering the key of the message."""
        if self._deduplication_cache is not None and self._deduplication_cache.has_key_of(message):
            return self._discard_queue
        return self._delaying_queue(message)

    def _delaying_queue(self, message: Message) -> Queue | None:
        return self.waiting if self.waiting is not None and delay_ms(message) else None

    def bound(self, binding: "Binding") -> None:
        """Do nothing: a new destination gets later messages only."""

    def close(self) -> None:
        """Delete delayed messages and the deduplication cache: the exchange is deleted."""
        if self.waiting is not None:
            self.waiting.close()
            self._events.left(self._place, "exchange deleted")
        if self._deduplication_cache is not None:
            self._forget()


class _Discarding(QueueFeature):
    """Accepts every message and drops it: all are repeated ones."""

    def __init__(self, events: "TraceEvents", place: TracedPlace) -> None:
        self._events = events
        self._place = place

    def diverts(self, message: Message) -> bool:
        """Accept a message."""
        self._events.kept_out(self._place, message, "duplicate")
        return True


def interceptor_for(
    record: ExchangeRecord,
    journal: "Journal",
    deduplication_caches: DeduplicationCaches,
    trace_events: "TraceEvents",
    *,
    is_durable: bool,
    release_due: "Callable[[Queue, QueuedMessage], DeathReason | None]",
) -> DelayingDeduplicator | None:
    """Return the interceptor of an exchange, ``None`` if it needs none.

    ``release_due`` routes a message of the given queue of delayed ones, or returns why it has to wait on: so do those
    of an inert exchange until its type is available again.
    """
    deduplicates = record.type == DEDUPLICATED or record.arguments.get(DEDUPLICATED) is True
    if record.type != DELAYED and not deduplicates:
        return None
    place = TracedPlace(exchange=record.name)
    waiting = None
    if record.type == DELAYED:

        def release(entry: QueuedMessage) -> DeathReason | None:
            return release_due(held, entry)

        held = Queue(record.vhost, "", journal, id=record.queue_id, is_durable=is_durable)
        held.apply((Delaying(held, journal.clock, trace_events, place, delays_arrivals=True, release=release),))
        waiting = held
    deduplication_cache = _opened(record, deduplication_caches, is_durable) if deduplicates else None
    discard_queue = Queue(record.vhost, "", journal, features=(_Discarding(trace_events, place),))
    return DelayingDeduplicator(
        waiting,
        deduplication_cache,
        discard_queue,
        lambda: deduplication_caches.close(EXCHANGE, record.name),
        trace_events,
        place,
    )


def _opened(record: ExchangeRecord, deduplication_caches: DeduplicationCaches, is_durable: bool) -> DeduplicationCache:
    """Return the cache of an exchange, sized by its arguments."""
    size = positive(record.arguments.get("x-cache-size")) or DEFAULT_SIZE
    ttl_ms = positive(record.arguments.get("x-cache-ttl"))
    return deduplication_caches.open(EXCHANGE, record.name, size, ttl_ms, survives=is_durable)
