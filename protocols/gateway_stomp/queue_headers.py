"""What a client asks a queue to be, in the headers of a SEND or a SUBSCRIBE."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.kernel.message import Arguments, Value
from gateway_stomp.translate import is_true, whole_number

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

    :raises PreconditionFailed: for what should be a number and is none.
    """
    durable = headers.get("durable")
    if durable is None and not of_send:
        durable = headers.get("persistent")
    return QueueHeaders(
        None if durable is None else is_true(durable),
        _flag(headers, "auto-delete"),
        _flag(headers, "exclusive"),
        headers.get("x-queue-name", ""),
        _arguments(headers),
    )


def _flag(headers: Mapping[str, str], name: str) -> bool | None:
    return is_true(headers[name]) if name in headers else None


def _arguments(headers: Mapping[str, str]) -> Arguments:
    arguments: dict[str, Value] = {name: headers[name].strip() for name in TEXTS if name in headers}
    arguments |= {name: whole_number(name, headers[name].strip()) for name in NUMBERS if name in headers}
    arguments |= {name: is_true(headers[name]) for name in BOOLEANS if name in headers}
    return arguments
