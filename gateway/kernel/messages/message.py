"""Messages: the header as its publisher sent it, the body, and the properties decoded from the header.

A message keeps the publisher's bytes. The header is decoded into properties on demand, never to forward the message;
the few fields that the kernel needs for every message are stored beside the bytes, and messages with equal headers
share one ``Header``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NewType, Protocol, TypeAlias

from gateway.kernel.compiling import mypyc_attr

Value: TypeAlias = "bool | int | float | str | bytes | Decimal | datetime | list[Value] | dict[str, Value] | None"
"""A value in a headers or arguments table of any protocol."""


Arguments: TypeAlias = Mapping[str, Value]
"""The optional arguments of a declaration, binding or consumer."""

MessageId = NewType("MessageId", int)
"""The number of a stored message in the store; 0 if it was never stored."""


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a message, common to all protocols (AMQP 0-9-1, 4.2.6 and class basic).

    ``timestamp`` is in whole seconds of UTC, ``expiration`` a decimal string of milliseconds, as publishers send it.
    """

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Mapping[str, Value] = field(default_factory=dict)
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: datetime | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


class HeaderEdit:
    """An edit of headers: some ``headers`` set, others removed and, on request, no expiration.

    One edit may be made in many headers, so what it has must not change. A format keeps what it encodes for that in
    ``encoded``, by its name.
    """

    __slots__ = ("drops_expiration", "encoded", "headers", "without")

    def __init__(
        self, headers: Mapping[str, Value], without: Collection[str] = (), *, drops_expiration: bool = False
    ) -> None:
        self.headers = headers
        self.without = without
        self.drops_expiration = drops_expiration
        self.encoded: dict[str, bytes] = {}


class HeaderFormat(Protocol):
    """The encoding of message properties by one protocol.

    Each adapter supplies one. ``name`` is stored with each persistent message, so it must never change.
    """

    name: str

    def header(self, raw: bytes) -> "Header":
        """Return the header for these bytes, from a cache if they were seen recently.

        :raises ProtocolViolation: if ``raw`` is malformed.
        """
        ...

    def properties(self, raw: bytes) -> Properties:
        """Decode all properties. :raises ProtocolViolation: if ``raw`` is malformed."""
        ...

    def edited(self, raw: bytes, edit: HeaderEdit) -> bytes:
        """Return ``raw`` as edited. All other values keep their value and their protocol's type."""
        ...

    def stamped(self, raw: bytes, timestamp_s: int) -> bytes:
        """Return ``raw`` with this property ``timestamp`` (Unix time); unchanged if the protocol has none."""
        ...


class Header:
    """A message header as its publisher sent it, with the decoded fields that the kernel needs for each message.

    ``expiration_ms`` is the publisher's TTL, ``None`` for none. ``sender_keys`` are the routing keys of the ``CC`` and
    ``BCC`` headers, empty for most messages. ``stored_raw`` are the bytes for the store: ``raw`` with the ``BCC``
    header, which consumers must not see. ``is_ordinary`` means that the adapter need not check the user id, direct
    replies or further keys. ``filter_value`` caches the filter value found by a stream (``stream_filters``), ``None``
    before.
    """

    __slots__ = (
        "_properties",
        "expiration_ms",
        "filter_value",
        "format",
        "is_ordinary",
        "is_persistent",
        "priority",
        "raw",
        "sender_keys",
        "stored_raw",
        "user_id",
    )

    def __init__(
        self,
        format: HeaderFormat,
        raw: bytes,
        *,
        is_persistent: bool = False,
        priority: int = 0,
        expiration_ms: int | None = None,
        user_id: str | None = None,
        sender_keys: tuple[str, ...] = (),
        is_ordinary: bool = True,
    ) -> None:
        self.format = format
        self.raw = raw
        self.stored_raw = raw
        self.is_persistent = is_persistent
        self.priority = priority
        self.expiration_ms = expiration_ms
        self.user_id = user_id
        self.sender_keys = sender_keys
        self.is_ordinary = is_ordinary
        self.filter_value: bytes | None = None
        self._properties: Properties | None = None

    @property
    def properties(self) -> Properties:
        """All properties, decoded on first use."""
        if self._properties is None:
            self._properties = self.format.properties(self.raw)
        return self._properties

    def edited(
        self, headers: Mapping[str, Value], *, without: Collection[str] = (), drops_expiration: bool = False
    ) -> "Header":
        """Return a copy with some headers set, others removed and, on request, no expiration."""
        return self.after(HeaderEdit(headers, without, drops_expiration=drops_expiration))

    def after(self, edit: HeaderEdit) -> "Header":
        """Return a copy as edited."""
        expiration_ms = None if edit.drops_expiration else self.expiration_ms
        edited = self._copy(self.format.edited(self.raw, edit), expiration_ms)
        if self.stored_raw is not self.raw:
            edited.stored_raw = self.format.edited(self.stored_raw, edit)
        return edited

    def stamped(self, timestamp_s: int) -> "Header":
        """Return a copy with this property ``timestamp``, as far as the protocol of the header has it."""
        stamped = self._copy(self.format.stamped(self.raw, timestamp_s), self.expiration_ms)
        if self.stored_raw is not self.raw:
            stamped.stored_raw = self.format.stamped(self.stored_raw, timestamp_s)
        return stamped

    def _copy(self, raw: bytes, expiration_ms: int | None) -> "Header":
        return Header(
            self.format,
            raw,
            is_persistent=self.is_persistent,
            priority=self.priority,
            expiration_ms=expiration_ms,
            user_id=self.user_id,
            sender_keys=self.sender_keys,
            is_ordinary=self.is_ordinary,
        )


@mypyc_attr(acyclic=True, free_list_len=1)
class Message:
    """One published message: immutable, and shared by every queue it was routed to.

    ``id`` is managed by the journal: the number of the content in the store, 0 while it is not stored.
    """

    __slots__ = ("body", "exchange", "header", "id", "routing_key")

    def __init__(self, exchange: str, routing_key: str, header: Header, body: bytes) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.header = header
        self.body = body
        self.id = 0

    @property
    def properties(self) -> Properties:
        """The properties the publisher set."""
        return self.header.properties

    @property
    def headers(self) -> Mapping[str, Value]:
        """The headers table the publisher set; empty if none."""
        return self.header.properties.headers

    def with_routing_key(self, routing_key: str) -> "Message":
        """Return a copy with another routing key, as for sender-selected distribution."""
        return Message(self.exchange, routing_key, self.header, self.body)

    def edited(
        self,
        headers: Mapping[str, Value] | None = None,
        *,
        without: Collection[str] = (),
        body: bytes | None = None,
        routing_key: str | None = None,
    ) -> "Message":
        """Return a copy with some headers set and others removed, another body or another routing key.

        ``None`` keeps what the message has. All other headers and properties keep their bytes.
        """
        return Message(
            self.exchange,
            self.routing_key if routing_key is None else routing_key,
            self.header.edited(headers or {}, without=without) if headers or without else self.header,
            self.body if body is None else body,
        )

    def stamped(self, timestamp_s: int) -> "Message":
        """Return a copy with the property ``timestamp`` (Unix time); a message of MQTT has none, and stays as it is."""
        return Message(self.exchange, self.routing_key, self.header.stamped(timestamp_s), self.body)

    def with_address(self, exchange: str, routing_key: str, header: Header) -> "Message":
        """Return a copy with another exchange, routing key and header."""
        return Message(exchange, routing_key, header, self.body)
