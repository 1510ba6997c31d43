"""Headers of messages."""

from collections.abc import Mapping
from typing import Any

from gateway.clients.bounds import Seconds, milliseconds


def message_headers(
    headers: Mapping[str, Any] | None = None,
    *,
    delay: Seconds | None = None,
    deduplication_id: str | int | None = None,
    stream_filter_value: str | None = None,
) -> dict[str, Any]:  # Any: a value of a table of AMQP
    """Return the headers of a message of AMQP, with ``headers`` of the program.

    :param delay: how long a delayed exchange or queue holds the message.
    :param deduplication_id: the value by which repeated messages are found.
    :param stream_filter_value: the value that consumers of a stream filter by.
    :raises ValueError: if the delay is negative.
    """
    found = {
        "x-delay": None if delay is None else milliseconds("delay", delay),
        "x-deduplication-header": deduplication_id,
        "x-stream-filter-value": stream_filter_value,
    }
    return {**(headers or {}), **{name: value for name, value in found.items() if value is not None}}


def text_headers(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return headers as pairs of texts: user properties of MQTT 5, and with ``dict`` headers of STOMP.

    :raises ValueError: for a value that is neither a text nor a number nor a boolean.
    """
    return [(name, _text(name, value)) for name, value in headers.items()]


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise ValueError(f"{name} must be a text, a number or a boolean, not {value!r}")
    return str(value)
