"""Encoding of outgoing messages on a channel: ``basic.deliver``, ``basic.return`` and ``basic.get-ok`` with content.

The frames of two deliveries differ little, so repeated parts are cached: the method frame around the delivery tag by
consumer, exchange and routing key, the content header by header and body size. If two deliveries in a row differ only
in tag and body, the next ones are compared with them before the caches are asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from struct import Struct
from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.messages.message import Header, Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.net.outbox import HIGH_WATER, Outbox
from gateway_amqp.content import BASIC, BODY, FRAME_HEAD, HEADER, HEADER_HEAD, METHOD
from gateway_amqp.header import AMQP
from gateway_amqp.offsets import split_around_offset
from gateway_amqp.properties import encode_properties

#: delivery tag, redelivered
_TAG: Final = Struct(">QB")
_tag: Final[Callable[[int, bool], bytes]] = _TAG.pack
#: Every octet: the last one of a delivery tag.
_OCTETS: Final = tuple(bytes((octet,)) for octet in range(256))
#: The header with a message's offset in a stream.
_OFFSET: Final = Struct(">q")
_offset: Final[Callable[[int], bytes]] = _OFFSET.pack
_METHOD_ID: Final = Struct(">HH")
_DELIVER: Final = _METHOD_ID.pack(BASIC, 60)
_GET_OK: Final = _METHOD_ID.pack(BASIC, 71)
_RETURN: Final = _METHOD_ID.pack(BASIC, 50)
_END: Final = b"\xce"

#: Bytes of a content header frame besides the properties.
_AROUND_PROPERTIES: Final = FRAME_HEAD.size + 12 + len(_END)

#: Cached pieces per channel; when there are more, all are dropped. Bounds the memory for ever new keys or sizes.
_KEPT: Final = 256

#: The longest short string, in bytes (4.2.5.3).
_LONGEST_SHORT: Final = 255

#: Longer properties are not cached: long values seldom repeat.
_LONGEST_KEPT: Final = 512


def short(text: str) -> bytes:
    """Return a short string with its length. A longer topic of another protocol is truncated."""
    encoded = text.encode()
    if len(encoded) > _LONGEST_SHORT:
        encoded = encoded[:_LONGEST_SHORT].decode(errors="ignore").encode()
    return bytes((len(encoded),)) + encoded


def encoded_properties(header: Header) -> bytes:
    """Return the properties in AMQP encoding: the original bytes if the publisher used AMQP."""
    return header.raw if header.format is AMQP else encode_properties(header.properties)


def _without_headers(header: Header) -> bytes:
    """Return the properties alone: headers of another protocol, or of larger frames, may not fit a frame (4.2.6.1)."""
    return encode_properties(replace(header.properties, headers={}))


class RepeatedDelivery:
    """A delivery that came twice in a row: its encoded parts, and their meanings.

    ``before`` is the method frame up to the last octet of the delivery tag, so it is valid for the 256 tags of one
    ``tag_page``. ``after`` is what follows, up to the body.
    """

    __slots__ = ("after", "before", "consumer_tag", "exchange", "header", "routing_key", "size", "tag_page")

    def __init__(self, consumer_tag: str, message: Message, delivery_tag: int, before: bytes, after: bytes) -> None:
        self.consumer_tag = consumer_tag
        self.exchange = message.exchange
        self.routing_key = message.routing_key
        self.header = message.header
        self.size = len(message.body)
        self.tag_page = delivery_tag >> 8
        self.before = before
        self.after = after


class DeliveryWriter:
    """Writes messages to the outbox as frames of one channel."""

    __slots__ = (
        "_channel",
        "_frame_max",
        "_heads",
        "_last_around",
        "_last_head",
        "_methods",
        "_names",
        "_offset_heads",
        "_outbox",
        "_repeated",
    )

    def __init__(self, channel: int, outbox: Outbox, frame_max: int) -> None:
        self._channel = channel
        self._outbox = outbox
        self._frame_max = frame_max
        self._methods: dict[tuple[str, str, str], tuple[bytes, bytes]] = {}
        self._names: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self._heads: dict[tuple[Header, int], bytes] = {}
        self._offset_heads: dict[tuple[Header, int], tuple[bytes, bytes]] = {}
        self._last_around = b""
        self._last_head = b""
        self._repeated: RepeatedDelivery | None = None

    def deliver(self, consumer_tag: str, delivery_tag: int, redelivered: bool, message: Message) -> None:
        """Write ``basic.deliver`` and the content."""
        body, outbox, repeated = message.body, self._outbox, self._repeated
        size = len(body)
        if (
            repeated is not None
            and message.header is repeated.header
            and size == repeated.size
            and message.routing_key is repeated.routing_key
            and message.exchange is repeated.exchange
            and consumer_tag is repeated.consumer_tag
            and delivery_tag >> 8 == repeated.tag_page
            and not redelivered
        ):
            outbox.pieces += (repeated.before, _OCTETS[delivery_tag & 0xFF], repeated.after, body, _END)
        else:
            self._deliver(consumer_tag, delivery_tag, redelivered, message)
        outbox.size += size + 100  # ``delivered`` inlined, see docs/adr/0020
        if outbox.size > HIGH_WATER:
            outbox.is_open = False
        if not outbox.is_awake:
            outbox.wake()

    def _deliver(self, consumer_tag: str, delivery_tag: int, redelivered: bool, message: Message) -> None:
        """Write frames that differ from the last ones in more than the tag and the body."""
        around = self._methods.get((consumer_tag, message.exchange, message.routing_key))
        if around is None:
            around = self._around(consumer_tag, message)
        body = message.body
        head = self._heads.get((message.header, len(body)))
        if head is None:
            head = self._head(message.header, len(body))
        tag = _tag(delivery_tag, redelivered)
        if not body or len(body) + 8 > self._frame_max:
            self._outbox.pieces += (around[0], tag, around[1], head)
            self._write_body(body)
            return
        self._outbox.pieces += (around[0], tag, around[1], head, body, _END)
        if head is self._last_head and around[1] is self._last_around and not redelivered:
            before, after = around[0] + tag[:-2], tag[-1:] + around[1] + head
            self._repeated = RepeatedDelivery(consumer_tag, message, delivery_tag, before, after)
        self._last_around, self._last_head = around[1], head

    def deliver_run(self, consumer_tag: str, first_tag: int, run: Sequence[QueuedMessage]) -> None:
        """Write deliveries of a stream's messages, with consecutive delivery tags and their offsets."""
        outbox, size = self._outbox, 0
        for tag, entry in enumerate(run, first_tag):
            message = entry.message
            body = message.body
            around = self._methods.get((consumer_tag, message.exchange, message.routing_key))
            if around is None:
                around = self._around(consumer_tag, message)
            head = self._offset_heads.get((message.header, len(body)))
            if head is None:
                head = self._offset_head(message.header, len(body))
            before, behind = head
            if 0 < len(body) <= self._frame_max - 8:
                outbox.pieces += (
                    around[0], _tag(tag, False), around[1], before, _offset(entry.position), behind, body, _END
                )  # fmt: skip
            else:
                outbox.pieces += (around[0], _tag(tag, False), around[1], before, _offset(entry.position), behind)
                self._write_body(body)
            size += len(body)
        outbox.delivered(size + 100 * len(run))

    def get_ok(self, delivery_tag: int, redelivered: bool, message: Message, message_count: int) -> None:
        """Write ``basic.get-ok`` and the content."""
        arguments = (
            _tag(delivery_tag, redelivered)
            + short(message.exchange)
            + short(message.routing_key)
            + message_count.to_bytes(4, "big")
        )
        self._write(_GET_OK + arguments, message)

    def returned(self, code: int, text: str, message: Message) -> None:
        """Write ``basic.return`` and the content."""
        arguments = code.to_bytes(2, "big") + short(text) + short(message.exchange) + short(message.routing_key)
        self._write(_RETURN + arguments, message)

    def _write(self, method: bytes, message: Message) -> None:
        self._outbox.pieces += (
            FRAME_HEAD.pack(METHOD, self._channel, len(method)) + method + _END,
            self._head(message.header, len(message.body)),
        )
        if len(message.body) + 8 <= self._frame_max and message.body:
            self._outbox.pieces += (message.body, _END)
        else:
            self._write_body(message.body)
        self._outbox.size += len(message.body) + 100
        self._outbox.wake()

    def _around(self, consumer_tag: str, message: Message) -> tuple[bytes, bytes]:
        """Return the method frame before the delivery tag, and from the exchange on."""
        names = (consumer_tag, message.exchange)
        parts = self._names.get(names)
        if parts is None:
            parts = remember(self._names, names, (_DELIVER + short(consumer_tag), short(message.exchange)), _KEPT)
        before, exchange = parts
        key = short(message.routing_key)
        size = len(before) + _TAG.size + len(exchange) + len(key)
        around = FRAME_HEAD.pack(METHOD, self._channel, size) + before, exchange + key + _END
        return remember(self._methods, (consumer_tag, message.exchange, message.routing_key), around, _KEPT)

    def _head(self, header: Header, size: int) -> bytes:
        """Return the content header frame and, if the body fits one frame, the head of the body frame."""
        properties = encoded_properties(header)
        if len(properties) > self._frame_max - _AROUND_PROPERTIES:
            properties = _without_headers(header)
        head = self._header_frame(len(properties), size) + properties + self._between(size)
        if len(properties) <= _LONGEST_KEPT:
            remember(self._heads, (header, size), head, _KEPT)
        return head

    def _offset_head(self, header: Header, size: int) -> tuple[bytes, bytes]:
        """Return the same, split before and after the offset of a stream's message."""
        before, behind = split_around_offset(encoded_properties(header))
        if len(before) + _OFFSET.size + len(behind) > self._frame_max - _AROUND_PROPERTIES:
            before, behind = split_around_offset(_without_headers(header))
        properties_size = len(before) + _OFFSET.size + len(behind)
        head = self._header_frame(properties_size, size) + before, behind + self._between(size)
        if properties_size <= _LONGEST_KEPT:
            remember(self._offset_heads, (header, size), head, _KEPT)
        return head

    def _header_frame(self, properties_size: int, body_size: int) -> bytes:
        """Return a content header frame up to its properties."""
        return HEADER_HEAD.pack(HEADER, self._channel, 12 + properties_size, BASIC, 0, body_size)

    def _between(self, body_size: int) -> bytes:
        """Return the bytes between the properties and the body: the head of the body frame, if there is exactly one."""
        if body_size and body_size + 8 <= self._frame_max:
            return _END + FRAME_HEAD.pack(BODY, self._channel, body_size)
        return _END

    def _write_body(self, body: bytes) -> None:
        """Write a body of no frame or of several frames."""
        room = self._frame_max - 8
        for start in range(0, len(body), room):
            chunk = body[start : start + room]
            self._outbox.pieces += (FRAME_HEAD.pack(BODY, self._channel, len(chunk)), chunk, _END)
