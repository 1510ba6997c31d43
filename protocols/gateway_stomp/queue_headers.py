"""What a client asks a queue to be, in the headers of a SEND or a SUBSCRIBE."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.kernel.messages.message import Arguments, Value
from gateway_stomp.translate import truth_of, whole_number

#: Arguments that are text, and those that are numbers. ``x-overflow`` is in RabbitMQ's documentation, not in its code.
TEXTS: Final = (
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-age",
    "x-overflow",
    "x-queue-type",
)
NUMBERS: Final = (
    "x-delivery-limit",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-message-ttl",
    "x-stream-filter-size-bytes",
    "x-stream-max-segment-size-bytes",
)
BOOLEANS: Final = ("x-single-active-consumer",)


@dataclass(frozen=True, slots=True)
class QueueHeaders:
    """What was asked for; ``None`` where nothing was said. ``name`` is empty unless the client chose one."""

    is_durable: bool | None
    is_auto_delete: bool | None
    is_exclusive: bool | None
    name: str
    arguments: Arguments


def queue_headers(headers: Mapping[str, str], *, of_send: bool) -> QueueHeaders:
    """Read what is asked of a queue. ``persistent`` of a SEND speaks of the message, of a SUBSCRIBE of the queue.

    :raises PreconditionFailed: for what should be a number, or true or false, and is neither.
    """
    is_durable = truth_of(headers, "durable")
    if is_durable is None and not of_send:
        is_durable = truth_of(headers, "persistent")
    return QueueHeaders(
        is_durable,
        truth_of(headers, "auto-delete"),
        truth_of(headers, "exclusive"),
        headers.get("x-queue-name", ""),
        _arguments(headers),
    )


def _arguments(headers: Mapping[str, str]) -> Arguments:
    arguments: dict[str, Value] = {name: headers[name].strip() for name in TEXTS if name in headers}
    arguments |= {name: whole_number(name, headers[name].strip()) for name in NUMBERS if name in headers}
    arguments |= {name: truth for name in BOOLEANS if (truth := truth_of(headers, name)) is not None}
    return arguments
