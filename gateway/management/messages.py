"""Conversion of messages to and from JSON, for publishing and fetching over HTTP."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from gateway.kernel.messages.bounds import require_headers
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.management.http.bodies import base64, integer
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields
from gateway.management.message_checks import require_deliverable

_NUMBERS: Final = frozenset({"delivery_mode", "priority", "timestamp"})
_NAMES: Final = tuple(field.name for field in fields(Properties))


def message_of(exchange: str, routing_key: str, properties: object, payload: str, encoding: str) -> Message:
    """Return the message of a publish request.

    :raises HttpError: if a field is malformed.
    :raises PreconditionFailed: if the message could not be delivered.
    """
    if not isinstance(routing_key, str) or not isinstance(payload, str):
        raise bad_request("routing_key and payload must be strings")
    properties = properties_of(properties)
    require_deliverable(routing_key, properties)
    return Message(exchange, routing_key, native_header(properties), body_of(payload, encoding))


def message_view(queue_length: int, entry: QueuedMessage, message: Message, encoding: str, truncate: int) -> Fields:
    """Return a fetched message; ``truncate`` is the maximum number of bytes of the body, 0 for all."""
    content = content_view(message, encoding, message.body[:truncate] if truncate else message.body)
    return {"redelivered": entry.is_redelivered, "message_count": queue_length} | content


def content_view(message: Message, encoding: str, shown: bytes) -> Fields:
    """Return a message with ``shown``, a prefix of its body."""
    payload, written_as = _payload(shown, encoding)
    return {
        "payload_bytes": len(message.body),
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "properties": properties_view(message.properties),
        "payload": payload,
        "payload_encoding": written_as,
    }


def properties_of(given: object) -> Properties:
    """Parse properties; unknown ones are ignored, as in RabbitMQ. :raises HttpError: for wrong values."""
    if given in ({}, [], None):
        return Properties()
    if not isinstance(given, Mapping):
        raise bad_request(["not_object", "properties"])
    return Properties(**{name: _property(name, given[name]) for name in _NAMES if given.get(name) is not None})


def _property(name: str, value: Any) -> Any:  # one of the types of the fields of Properties
    if name == "headers":
        if not isinstance(value, dict):
            raise bad_request(["not_object", name])
        require_headers(value)
        return value
    if name not in _NUMBERS:
        if not isinstance(value, str):
            raise bad_request(["not_string", name])
        return value
    number = integer(value, name)
    try:
        return datetime.fromtimestamp(number, UTC) if name == "timestamp" else number.to_bytes(1, "big")[0]
    except (OverflowError, ValueError, OSError):
        raise bad_request(["out_of_range", name]) from None


def properties_view(properties: Properties) -> Fields:
    """Return the properties that are set."""
    view = {name: getattr(properties, name) for name in _NAMES if getattr(properties, name) is not None}
    if not properties.headers:
        del view["headers"]
    return view


def body_of(payload: str, encoding: str) -> bytes:
    """Return the body of a payload in a request. :raises HttpError: if the encoding is unknown or violated."""
    if encoding == "string":
        return payload.encode()
    if encoding == "base64":
        return base64(payload)
    raise bad_request(["unsupported_encoding", encoding])


def _payload(body: bytes, encoding: str) -> tuple[str, str]:
    """Return a body as text if the encoding is ``auto`` and it is UTF-8, else as base64."""
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    if encoding == "auto":
        try:
            return body.decode(), "string"
        except UnicodeDecodeError:
            pass
    return b64encode(body).decode(), "base64"
