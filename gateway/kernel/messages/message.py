"""What was published: a message, the header its publisher sent, and the properties inside it.

A message keeps the bytes of its publisher. The header is decoded into properties when someone looks, never to pass it
on; the few facts the kernel needs for every message stand beside the bytes, and messages with equal headers share one
``Header``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NewType, Protocol, TypeAlias

from gateway.kernel.compiling import mypyc_attr

Value: TypeAlias = "bool | int | float | str | bytes | Decimal | datetime | list[Value] | dict[str, Value] | None"
"""A value in a headers or arguments table, whichever protocol it came from."""


Arguments: TypeAlias = Mapping[str, Value]
"""What a declarer, binder or consumer asked for beyond the fixed fields."""

MessageId = NewType("MessageId", int)
"""The place of a stored message in the store; 0 means that it was never stored."""


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a message as every protocol understands them (AMQP 0-9-1, 4.2.6 and class basic).

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


class HeaderFormat(Protocol):
    """How one protocol writes the properties of a message.

    Each adapter supplies one. ``name`` is stored beside the bytes of a persistent message, so it never changes.
    """

    name: str

    def header(self, raw: bytes) -> "Header":
        """Return the header for these bytes, a shared one where the same bytes were seen lately.

        :raises ProtocolViolation: when ``raw`` is not well formed.
        """
        ...

    def properties(self, raw: bytes) -> Properties:
        """Decode everything. :raises ProtocolViolation: when ``raw`` is not well formed."""
        ...

    def edited(
        self, raw: bytes, headers: Mapping[str, Value], without: Collection[str], drops_expiration: bool
    ) -> bytes:
        """Return ``raw`` with these headers set, others gone and, if asked for, no expiration.

        What is not named keeps its value and its type, however the protocol tells types.
        """
        ...


class Header:
    """What a publisher said of a message, as sent, with the facts the kernel needs for each message.

    ``expiration_ms`` is the time to live the publisher asked for, ``None`` for none. ``sender_keys`` holds the routing
    keys of the ``CC`` and ``BCC`` headers and is empty for nearly every message. ``kept`` are the bytes for the store,
    ``raw`` and what consumers must not see: a header read from them knows the same keys. ``is_ordinary`` says that the
    adapter need not look at the user id, at a request for direct replies or at further keys. ``filter_value`` is what a
    stream found in it (``stream_filters``), ``None`` until one looked.
    """

    __slots__ = (
        "_properties",
        "expiration_ms",
        "filter_value",
        "format",
        "is_ordinary",
        "is_persistent",
        "kept",
        "priority",
        "raw",
        "sender_keys",
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
        self.kept = raw
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
        """Everything the header says, decoded on first use."""
        if self._properties is None:
            self._properties = self.format.properties(self.raw)
        return self._properties

    def edited(
        self, headers: Mapping[str, Value], *, without: Collection[str] = (), drops_expiration: bool = False
    ) -> "Header":
        """Return a header that says the same, but for these headers and the expiration."""
        edited = Header(
            self.format,
            self.format.edited(self.raw, headers, without, drops_expiration),
            is_persistent=self.is_persistent,
            priority=self.priority,
            expiration_ms=None if drops_expiration else self.expiration_ms,
            user_id=self.user_id,
            sender_keys=self.sender_keys,
            is_ordinary=self.is_ordinary,
        )
        if self.kept is not self.raw:
            edited.kept = self.format.edited(self.kept, headers, without, drops_expiration)
        return edited


@mypyc_attr(acyclic=True, free_list_len=1)
class Message:
    """One published message: immutable, and shared by every queue it was routed to.

    ``id`` belongs to the journal alone: the place of the content in the store, 0 while it has none.
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

    def keyed(self, routing_key: str) -> "Message":
        """Return the same content under another routing key, as sender-selected distribution needs it."""
        return Message(self.exchange, routing_key, self.header, self.body)

    def restated(self, exchange: str, routing_key: str, header: Header) -> "Message":
        """Return the same content with another address and header."""
        return Message(exchange, routing_key, header, self.body)
