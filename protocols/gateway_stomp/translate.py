"""Translation between STOMP headers and the kernel's properties, compatible with RabbitMQ."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Properties, Value

MAX_EXPIRATION_MS: Final = 315_360_000_000
"""Ten years, RabbitMQ's limit."""

#: Headers of one frame that are not part of the message.
OF_FRAMES: Final = frozenset(
    {"destination", "receipt", "transaction", "content-length", "message-id", "subscription", "redelivered", "ack"}
)

#: Headers whose values seldom repeat. Caching a head with one costs a seventh of its message, without any benefit.
NEVER_REPEATED: Final = frozenset({"receipt", "transaction", "correlation-id", "amqp-message-id"})

#: Header to property, for values that are text in both.
TEXTS: Final[Mapping[str, str]] = {
    "content-type": "content_type",
    "content-encoding": "content_encoding",
    "correlation-id": "correlation_id",
    "reply-to": "reply_to",
    "expiration": "expiration",
    "amqp-message-id": "message_id",
    "type": "type",
    "user-id": "user_id",
    "app-id": "app_id",
}
_OTHERS: Final = frozenset({"persistent", "priority", "timestamp"})

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_LONGEST_SHORT_STRING: Final = 255

SURELY_SHORT: Final = _LONGEST_SHORT_STRING // 4
"""A text of at most this many characters fits a short string: a character takes at most four bytes of UTF-8."""

LATEST_S: Final = 253_402_300_799
"""The end of the year 9999, the largest datetime."""

#: Prefixes of reply destinations: any other reply-to is the name of a queue.
_PREFIXES: Final = ("/temp-queue", "/exchange", "/topic", "/amq/queue", "/queue", "/reply-queue")


def properties_of(headers: Mapping[str, str], added: Mapping[str, Value]) -> Properties:
    """Translate the headers of a SEND to properties; ``added`` headers replace the client's.

    A name that AMQP cannot encode is left out. The values are those of a ``StompHeader``.
    """
    texts = {property: headers[name] for name, property in TEXTS.items() if name in headers}
    own = TEXTS.keys() | _OTHERS
    custom: dict[str, Value] = {
        name: value
        for name, value in headers.items()
        if name not in own and len(name.encode()) <= _LONGEST_SHORT_STRING
    }
    return Properties(
        content_type=texts.get("content_type"),
        content_encoding=texts.get("content_encoding"),
        headers={**custom, **added},
        delivery_mode=2 if is_true(headers.get("persistent")) else None,
        priority=priority_of(headers),
        correlation_id=texts.get("correlation_id"),
        reply_to=texts.get("reply_to"),
        expiration=texts.get("expiration"),
        message_id=texts.get("message_id"),
        timestamp=_timestamp(headers.get("timestamp")),
        type=texts.get("type"),
        user_id=texts.get("user_id"),
        app_id=texts.get("app_id"),
    )


def headers_of(properties: Properties) -> dict[str, str]:
    """Translate properties to the headers of a MESSAGE.

    Of the headers table, text and whole numbers are translated, other types have no text form in STOMP; ``x-death`` is
    encoded as JSON. Names of frame headers are skipped, and values that would end the head.
    """
    headers = {
        name: str(value) for name, property in TEXTS.items() if (value := getattr(properties, property)) is not None
    }
    if properties.delivery_mode == 2:
        headers["persistent"] = "true"
    if properties.priority is not None:
        headers["priority"] = str(properties.priority)
    if properties.timestamp is not None:
        headers["timestamp"] = str(int(properties.timestamp.timestamp()))
    if "reply-to" in headers:
        headers["reply-to"] = reply_destination(headers["reply-to"])
    for name, value in properties.headers.items():
        text = _json(value) if name == "x-death" else _text(value)
        if text is not None and name and name not in OF_FRAMES:
            headers.setdefault(name, text)
    return {name: value for name, value in headers.items() if "\0" not in name and "\0" not in value}


def reply_destination(reply_to: str) -> str:
    """Return the destination for replies: a queue's name becomes ``/reply-queue/`` and the name."""
    return reply_to if reply_to.startswith(_PREFIXES) else f"/reply-queue/{reply_to}"


def require_short(headers: Mapping[str, str]) -> None:
    """Check the lengths that AMQP can encode. :raises PreconditionFailed: for a text that is too long."""
    for name, value in headers.items():
        if len(value) > SURELY_SHORT and name in TEXTS and len(value.encode()) > _LONGEST_SHORT_STRING:
            raise PreconditionFailed(f"header '{name}' is longer than {_LONGEST_SHORT_STRING} bytes")


def require_time(headers: Mapping[str, str]) -> None:
    """Check the timestamp. :raises PreconditionFailed: when ``timestamp`` is invalid."""
    _timestamp(headers.get("timestamp"))


def is_true(value: str | None) -> bool:
    """Return whether a header is ``true``, in any case: Python clients send ``True``."""
    return value is not None and value.strip().lower() == "true"


def truth_of(headers: Mapping[str, str], name: str) -> bool | None:
    """Return the value of a boolean header, ``None`` if it is absent.

    :raises PreconditionFailed: when it is neither ``true`` nor ``false``.
    """
    value = headers.get(name)
    if value is None:
        return None
    if value.strip().lower() not in ("true", "false"):
        raise PreconditionFailed(f"header '{name}' must be true or false, not '{value[:80]}'")
    return is_true(value)


def whole_number(name: str, value: str) -> int:
    """Return the value of a numeric header. :raises PreconditionFailed: when it is not a whole number."""
    if _NUMBER.fullmatch(value) is None:
        raise PreconditionFailed(f"header '{name}' must be a whole number, not '{value[:80]}'")
    return int(value)


def priority_of(headers: Mapping[str, str]) -> int | None:
    """Return the priority, ``None`` if it is absent. :raises PreconditionFailed: when it is not from 0 to 255."""
    if "priority" not in headers:
        return None
    priority = whole_number("priority", headers["priority"])
    if not 0 <= priority <= 255:
        raise PreconditionFailed(f"header 'priority' must be from 0 to 255, not {priority}")
    return priority


def expiration_ms_of(headers: Mapping[str, str]) -> int | None:
    """Return the time to live, ``None`` if it is absent. :raises PreconditionFailed: if not from 0 to ten years."""
    if "expiration" not in headers:
        return None
    expiration_ms = whole_number("expiration", headers["expiration"])
    if not 0 <= expiration_ms <= MAX_EXPIRATION_MS:
        raise PreconditionFailed(f"header 'expiration' must be from 0 to {MAX_EXPIRATION_MS}, not {expiration_ms}")
    return expiration_ms


def _timestamp(value: str | None) -> datetime | None:
    if value is None:
        return None
    seconds = whole_number("timestamp", value)
    if not 0 <= seconds <= LATEST_S:
        raise PreconditionFailed(f"header 'timestamp' must be seconds from 0 to {LATEST_S}, not {seconds}")
    return datetime.fromtimestamp(seconds, UTC)


def _text(value: Value) -> str | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, int) else None


def _json(value: Value) -> str | None:
    if not isinstance(value, list):
        return _text(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_json_of_time)


def _json_of_time(value: object) -> object:
    return int(value.timestamp()) if isinstance(value, datetime) else str(value)
