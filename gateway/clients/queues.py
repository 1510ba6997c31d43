"""Arguments of queues and streams."""

from collections.abc import Sequence
from typing import Any, Literal

from gateway.clients.bounds import Seconds, milliseconds, number
from gateway.clients.deduplication import DeduplicationRule


def queue_arguments(
    *,
    type: Literal["classic", "quorum"] | None = None,
    delayed: bool = False,
    retry_delays: Sequence[Seconds] = (),
    delivery_limit: int | None = None,
    deduplication: DeduplicationRule | None = None,
    message_ttl: Seconds | None = None,
    expire_anywhere: bool = False,
    expires: Seconds | None = None,
    max_length: int | None = None,
    max_length_bytes: int | None = None,
    reject_when_full: bool = False,
    max_priority: int | None = None,
    single_active_consumer: bool = False,
    dead_letter_exchange: str | None = None,
    dead_letter_routing_key: str | None = None,
) -> dict[str, Any]:  # Any: a value of a table of AMQP
    """Return the arguments of a queue; times are seconds or ``timedelta``. What is not given keeps its default.

    :param delayed: the queue holds a message for the ``delay`` of its headers.
    :param retry_delays: the pauses before a rejected message is delivered again; then it is dead-lettered.
    :param expire_anywhere: a message leaves when its time to live ends, not only at the head of the queue.
    :raises ValueError: if a value is out of its range.
    """
    if type not in (None, "classic", "quorum"):
        raise ValueError(f"type must be 'classic' or 'quorum', not {type!r}")
    if dead_letter_routing_key is not None and dead_letter_exchange is None:
        raise ValueError("dead_letter_routing_key needs a dead_letter_exchange")
    if reject_when_full and max_length is None and max_length_bytes is None:
        raise ValueError("reject_when_full needs max_length or max_length_bytes")
    found: dict[str, Any] = {
        "x-queue-type": type,
        "x-delayed-delivery": delayed or None,
        "x-retry-delays": [milliseconds("retry_delays", each) for each in retry_delays] or None,
        "x-delivery-limit": None if delivery_limit is None else number("delivery_limit", delivery_limit, 0),
        "x-message-ttl": None if message_ttl is None else milliseconds("message_ttl", message_ttl),
        "x-expire-mode": "anywhere" if expire_anywhere else None,
        "x-expires": None if expires is None else milliseconds("expires", expires, 1),
        "x-max-length": None if max_length is None else number("max_length", max_length, 0),
        "x-max-length-bytes": None if max_length_bytes is None else number("max_length_bytes", max_length_bytes, 0),
        "x-overflow": "reject-publish" if reject_when_full else None,
        "x-max-priority": None if max_priority is None else number("max_priority", max_priority, 1, 255),
        "x-single-active-consumer": single_active_consumer or None,
        "x-dead-letter-exchange": dead_letter_exchange,
        "x-dead-letter-routing-key": dead_letter_routing_key,
    }
    given = {name: value for name, value in found.items() if value is not None}
    return given | (deduplication.arguments() if deduplication is not None else {})


def stream_arguments(
    *, max_age: Seconds | None = None, max_bytes: int | None = None, segment_bytes: int | None = None
) -> dict[str, Any]:
    """Return the arguments of a stream: its oldest segments leave by age and size. :raises ValueError: see above."""
    found: dict[str, Any] = {"x-queue-type": "stream"}
    if max_age is not None:
        found["x-max-age"] = f"{_whole_seconds('max_age', max_age)}s"
    if max_bytes is not None:
        found["x-max-length-bytes"] = number("max_bytes", max_bytes, 1)
    if segment_bytes is not None:
        found["x-stream-max-segment-size-bytes"] = number("segment_bytes", segment_bytes, 1)
    return found


def _whole_seconds(name: str, value: Seconds) -> int:
    seconds, rest = divmod(milliseconds(name, value, 1000), 1000)
    if rest:
        raise ValueError(f"{name} must be whole seconds, not {value!r}")
    return seconds
