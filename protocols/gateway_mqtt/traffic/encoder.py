"""Encoding of PUBLISH packets for subscribers. Subscribers with the same version and QoS share one encoding.

A message is offered to its subscribers one after the other, so a cache of one message is enough (measured with 100
subscribers: 0.15 µs instead of 1.2 µs for each delivery).
"""

from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.messages.message import Message
from gateway_mqtt.codec.data_types import LONGEST_STRING, utf8, varint
from gateway_mqtt.codec.properties import Properties, PropertyId, write_block
from gateway_mqtt.translation.delivery_view import DeliveryView
from gateway_mqtt.translation.topics import TopicMapping
from gateway_mqtt.translation.views import delivery_view_of, is_plain

#: The limit of cached topics; the cache is cleared when it is full.
_MAX_TOPICS: Final = 10_000

#: Longer topics, in bytes, are not cached.
_LONGEST_CACHED: Final = 512

_PUBLISH: Final = 0x30

#: The first bytes of packets of QoS 0, 1 and 2 without DUP and RETAIN.
_AT_MOST_ONCE: Final = b"\x30"
_AT_LEAST_ONCE: Final = b"\x32"
_EXACTLY_ONCE: Final = b"\x34"
_DUP: Final = 0x08
_RETAIN: Final = 0x01


class PacketHead:
    """The beginning of the last packet of one QoS, up to its topic: the next one often has the same topic and size.

    ``first`` is the first byte, ``number_size`` the size of the packet identifier, and ``tail_size`` that of the rest.
    """

    __slots__ = ("first", "number_size", "octets", "routing_key", "tail_size")

    def __init__(self, first: bytes, number_size: int) -> None:
        self.first = first
        self.number_size = number_size
        self.octets = b""
        self.routing_key: str | None = None
        self.tail_size = 0


@mypyc_attr(free_list_len=1)
class NumberedPacket:
    """A packet of QoS 1 or 2 without its packet identifier, which stands between ``head`` and ``tail``.

    ``size`` is the number of bytes with the identifier. ``qos`` is 0 for a message that has no such packet.
    """

    __slots__ = ("head", "qos", "size", "tail")

    def __init__(self, qos: int, head: bytes, tail: bytes) -> None:
        self.qos = qos
        self.head = head
        self.tail = tail
        self.size = len(head) + 2 + len(tail)


#: The packet of a message of QoS 0, or of one that subscribers see differently.
_NO_PACKET: Final = NumberedPacket(0, b"", b"")


class Encoder:
    """Encodes for clients of one version and one topic mapping.

    Owns the encodings of the last message. The fast methods are for plain messages, which all subscribers see alike;
    ``special`` is for all others.
    """

    __slots__ = (
        "_at_most_once",
        "_for_qos_1",
        "_for_qos_2",
        "_heads",
        "_is_v5",
        "_mapping",
        "_message",
        "_topics",
    )

    def __init__(self, is_v5: bool, mapping: TopicMapping) -> None:
        self._is_v5 = is_v5
        self._mapping = mapping
        self._message: Message | None = None
        self._at_most_once = b""
        self._for_qos_1: NumberedPacket | None = None
        self._for_qos_2: NumberedPacket | None = None
        self._topics: dict[str, bytes] = {}
        self._heads = PacketHead(_AT_MOST_ONCE, 0), PacketHead(_AT_LEAST_ONCE, 2), PacketHead(_EXACTLY_ONCE, 2)

    def at_most_once(self, message: Message) -> bytes:
        """Return the packet of QoS 0; empty if the message is not plain."""
        if message is not self._message:
            self._begin(message)
        packet = self._at_most_once
        if not packet and is_plain(message.header):
            tail = self._tail(message) if self._is_v5 else message.body
            packet = self._at_most_once = self._head(0, message.routing_key, len(tail)) + tail
        return packet

    def acknowledged(self, message: Message, highest_qos: int) -> NumberedPacket:
        """Return the packet for subscriptions with this QoS; its own QoS is 0 if the message is not plain or has QoS 0.

        Only the first subscriber needs to read the header of a message.
        """
        if message is not self._message:
            self._begin(message)
        packet = self._for_qos_1 if highest_qos == 1 else self._for_qos_2
        if packet is None:
            packet = self._encode_numbered(message, highest_qos)
            if highest_qos == 1:
                self._for_qos_1 = packet
            else:
                self._for_qos_2 = packet
        return packet

    def _encode_numbered(self, message: Message, highest_qos: int) -> NumberedPacket:
        qos = min(highest_qos, delivery_view_of(message.header).qos)
        if not qos or not is_plain(message.header):
            return _NO_PACKET
        tail = self._tail(message) if self._is_v5 else message.body
        return NumberedPacket(qos, self._head(qos, message.routing_key, len(tail)), tail)

    def _head(self, qos: int, routing_key: str, tail_size: int) -> bytes:
        head = self._heads[qos]
        if routing_key is not head.routing_key or tail_size != head.tail_size:
            topic = self.topic(routing_key)
            head.octets = head.first + varint(len(topic) + head.number_size + tail_size) + topic
            head.routing_key, head.tail_size = routing_key, tail_size
        return head.octets

    def special(
        self,
        message: Message,
        view: DeliveryView,
        *,
        qos: int,
        packet_id: int,
        is_resent: bool,
        is_retained: bool,
        identifiers: tuple[int, ...],
        topic: bytes,
        alias: int,
        now_ms: int,
    ) -> bytes:
        """Return the packet of a message that differs between subscribers.

        ``topic`` is already encoded with its length; ``alias`` 0 means none. The expiry interval is reduced by the time
        the message waited (MQTT-3.3.2-6).
        """
        first = _PUBLISH | (_DUP if is_resent and qos else 0) | qos << 1 | (_RETAIN if is_retained else 0)
        parts = [topic, packet_id.to_bytes(2, "big") if qos else b""]
        if self._is_v5:
            parts.append(_properties(view, identifiers, alias, now_ms))
        parts.append(message.body)
        return bytes((first,)) + varint(sum(map(len, parts))) + b"".join(parts)

    def topic(self, routing_key: str) -> bytes:
        """Return the encoded topic of a routing key, with its length."""
        topic = self._topics.get(routing_key)
        if topic is None:
            topic = _written(self._mapping.topic(routing_key))
            if len(topic) <= _LONGEST_CACHED:
                remember(self._topics, routing_key, topic, _MAX_TOPICS)
        return topic

    def _begin(self, message: Message) -> None:
        self._message = message
        self._at_most_once = b""
        self._for_qos_1 = self._for_qos_2 = None

    def _tail(self, message: Message) -> bytes:
        """Return the part of a 5.0 packet after the packet identifier."""
        block = delivery_view_of(message.header, self._mapping).block
        return varint(len(block)) + block + message.body


def _properties(view: DeliveryView, identifiers: tuple[int, ...], alias: int, now_ms: int) -> bytes:
    """Return the property block with this subscriber's own: remaining expiry, alias, subscription identifiers."""
    block = view.block_without_expiry
    own: Properties = {}
    if view.expiry_s is not None:
        waited_s = max(0, now_ms - view.arrived_at_ms) // 1000 if view.arrived_at_ms else 0
        own[PropertyId.MESSAGE_EXPIRY_INTERVAL] = max(0, view.expiry_s - waited_s)
    if alias:
        own[PropertyId.TOPIC_ALIAS] = alias
    if identifiers:
        own[PropertyId.SUBSCRIPTION_IDENTIFIER] = list(identifiers)
    if own:
        block = write_block(own) + block
    return varint(len(block)) + block


def _written(topic: str) -> bytes:
    """Return an encoded topic. A routing key of another protocol may be invalid as a topic name.

    Its message is delivered under the nearest valid name, because it must not end the subscriber's connection.
    """
    try:
        return utf8(topic)
    except ValueError:  # a surrogate, or more bytes than a string holds
        octets = topic.encode(errors="backslashreplace")[:LONGEST_STRING]
        return utf8(octets.decode(errors="ignore"))
