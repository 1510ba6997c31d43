"""The column values of a message's envelope.

A message's *envelope* is its content record without the body: exchange, routing key, header. Publishers repeat
envelopes, so the values are computed once for each envelope and shared by many rows.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from json.encoder import encode_basestring
from typing import Final, NamedTuple, TypeAlias, TypedDict

from gateway.kernel.errors import GatewayError
from gateway.kernel.messages.death_records import deaths_of
from gateway.kernel.messages.message import Header, HeaderFormat, Properties, Value
from gateway.kernel.messages.stored_message import StoredMessage
from gateway.kernel.messages.values import TAG, dumps

Death: TypeAlias = dict[str, str | int | datetime | list[str] | None]


class MqttColumns(TypedDict):
    """The properties of a message that only MQTT has."""

    topic: str
    qos: int
    retain: bool


class HeaderColumns(NamedTuple):
    """The columns of a message's headers."""

    headers: list[tuple[str, str | None]]
    headers_json: str
    x_death: list[Death] | None


NOTHING: Final = Properties()

#: Integers from here on may have a form of their own.
_SMALL: Final = 1 << 62


class EnvelopeColumns(NamedTuple):
    """One value for each column of ``schema.ENVELOPE``, in that order."""

    exchange: str
    routing_key: str
    protocol: str
    user_id: str | None
    client_id: str | None
    message_id: str | None
    correlation_id: str | None
    reply_to: str | None
    content_type: str | None
    content_encoding: str | None
    type: str | None
    app_id: str | None
    priority: int | None
    delivery_mode: int | None
    expiration: str | None
    redelivered: bool
    message_timestamp: datetime | None
    headers: list[tuple[str, str | None]]
    headers_json: str
    x_death: list[Death] | None
    mqtt: MqttColumns | None


class ProtocolProperties(NamedTuple):
    """The properties of a message that only one protocol has."""

    client_id: str | None = None
    mqtt: MqttColumns | None = None


ReadProtocolProperties: TypeAlias = Callable[[Header, str], ProtocolProperties]
"""Returns the properties of a header and routing key that only its protocol has."""


class EnvelopeDecoder:
    """Computes the column values of envelopes with the header formats of the protocols, each found by name."""

    def __init__(self, formats: Mapping[str, HeaderFormat], specialities: Mapping[str, ReadProtocolProperties]) -> None:
        self._formats = formats
        self._protocol_properties = specialities

    def columns(self, stored: StoredMessage) -> EnvelopeColumns:
        """Return the column values of a message without its body.

        A header that this version cannot decode leaves its columns null; the message itself is kept.
        """
        try:
            header = self._formats[stored.header_format].header(stored.header)
            properties = header.properties
            speciality = self._protocol_properties.get(stored.header_format)
            special = speciality(header, stored.routing_key) if speciality is not None else ProtocolProperties()
        except (GatewayError, KeyError, ValueError):  # an unknown format, or bytes that its adapter refuses
            properties, special = NOTHING, ProtocolProperties()
        return _columns(stored, properties, special)


def _columns(stored: StoredMessage, properties: Properties, special: ProtocolProperties) -> EnvelopeColumns:
    headers = header_columns(properties.headers)
    return EnvelopeColumns(
        exchange=text(stored.exchange),
        routing_key=text(stored.routing_key),
        protocol=stored.header_format,
        user_id=_text(properties.user_id),
        client_id=_text(special.client_id),
        message_id=_text(properties.message_id),
        correlation_id=_text(properties.correlation_id),
        reply_to=_text(properties.reply_to),
        content_type=_text(properties.content_type),
        content_encoding=_text(properties.content_encoding),
        type=_text(properties.type),
        app_id=_text(properties.app_id),
        priority=properties.priority,
        delivery_mode=properties.delivery_mode,
        expiration=_text(properties.expiration),
        redelivered=False,
        message_timestamp=properties.timestamp,
        headers=headers.headers,
        headers_json=headers.headers_json,
        x_death=headers.x_death,
        mqtt=special.mqtt,
    )


def header_columns(headers: Mapping[str, Value]) -> HeaderColumns:
    """Return the columns of these headers."""
    texts = [(text(name), as_text(value)) for name, value in headers.items()]
    return HeaderColumns(texts, as_json(headers), _deaths(headers))


def text(value: str) -> str:
    """Return text that UTF-8 can encode: a lone surrogate, which may arrive from the wire, becomes an escape."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def _text(value: str | None) -> str | None:
    return None if value is None else text(value)


def as_json(headers: Mapping[str, Value]) -> str:
    """Encode headers so that ``gateway.kernel.messages.values.loads`` returns exactly the same values."""
    if not headers:
        return "{}"
    written = _flat_json(headers)
    if not written:
        written = dumps(dict(headers)).decode("utf-8", "surrogatepass")
    try:
        written.encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON has an escape for it
        return json.dumps(json.loads(written), separators=(",", ":"))
    return written


def _flat_json(headers: Mapping[str, Value]) -> str:
    """Return what ``dumps`` writes for headers of text and small integers, in a quarter of the time; else ``""``."""
    members: list[str] = []
    for name, value in headers.items():
        if type(value) is str:
            members.append(f"{encode_basestring(name)}:{encode_basestring(value)}")
        elif type(value) is int and -_SMALL < value < _SMALL:
            members.append(f"{encode_basestring(name)}:{value}")
        else:
            return ""
    return "" if TAG in headers else f"{{{','.join(members)}}}"


def as_text(value: Value) -> str | None:
    """Return one header as text for people and SQL; ``headers_json`` keeps the exact value.

    UTF-8 bytes become text, other bytes hexadecimal digits, tables and lists JSON.
    """
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return text(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return value.hex()
        case datetime():
            return value.isoformat()
        case dict():
            return as_json(value)
        case list():
            return as_json({"": value})[4:-1]
        case _:
            return str(value)


def _deaths(headers: Mapping[str, Value]) -> list[Death] | None:
    """Return the ``x-death`` entries, newest first; malformed entries are skipped."""
    if "x-death" not in headers:
        return None
    return [_death(entry) for entry in deaths_of(headers) if isinstance(entry, dict)]


def _death(entry: Mapping[str, Value]) -> Death:
    count, time, keys = entry.get("count"), entry.get("time"), entry.get("routing-keys")
    named = {name: entry.get(name) for name in ("queue", "reason", "exchange")}
    return {
        **{name: text(value) if isinstance(value, str) else None for name, value in named.items()},
        "count": int(count) if isinstance(count, int) and abs(count) < 2**63 else None,
        "time": time if isinstance(time, datetime) else None,
        "routing_keys": [text(key) for key in keys if isinstance(key, str)] if isinstance(keys, list) else None,
    }
