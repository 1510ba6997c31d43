"""Queue settings in the headers of a SEND or SUBSCRIBE."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.kernel.messages.message import Arguments, Value
from gateway_stomp.translate import truth_of, whole_number

#: Arguments that are text, and those that are numbers. ``x-overflow`` is in RabbitMQ's documentation, but not in its
#: code.
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
    """The requested settings; ``None`` for those not given. ``name`` is empty unless the client chose one."""

    is_durable: bool | None
    is_auto_delete: bool | None
    is_exclusive: bool | None
    name: str
    arguments: Arguments


def queue_headers(headers: Mapping[str, str], *, of_send: bool) -> QueueHeaders:
    """Parse the queue settings. ``persistent`` concerns the message in a SEND and the queue in a SUBSCRIBE.

    :raises PreconditionFailed: when a value is not a number, or neither true nor false, as its header requires.
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
