"""Queue settings in the headers of a SEND or SUBSCRIBE."""

import re
from collections.abc import Collection, Mapping
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

#: A number of at most 64 bits, as text.
_WHOLE_NUMBER: Final = re.compile("-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class QueueHeaders:
    """The requested settings; ``None`` for those not given. ``name`` is empty unless the client chose one."""

    is_durable: bool | None
    is_auto_delete: bool | None
    is_exclusive: bool | None
    name: str
    arguments: Arguments


def queue_headers(headers: Mapping[str, str], offered: Collection[str], *, of_send: bool) -> QueueHeaders:
    """Parse the queue settings. ``persistent`` concerns the message in a SEND and the queue in a SUBSCRIBE.

    ``offered`` are the arguments of plugins. Digits are a number there, ``true`` and ``false`` a truth value.

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
        _arguments(headers, offered),
    )


def _arguments(headers: Mapping[str, str], offered: Collection[str]) -> Arguments:
    arguments: dict[str, Value] = {name: headers[name].strip() for name in TEXTS if name in headers}
    arguments |= {name: whole_number(name, headers[name].strip()) for name in NUMBERS if name in headers}
    arguments |= {name: truth for name in BOOLEANS if (truth := truth_of(headers, name)) is not None}
    arguments |= {name: _offered_value(headers[name].strip()) for name in offered if name in headers}
    return arguments


def _offered_value(text: str) -> Value:
    """Return a value whose type only its plugin knows."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else text
