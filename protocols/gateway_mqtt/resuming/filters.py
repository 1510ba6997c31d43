"""The subscriptions of a client, for a leader that does not have its session."""

from collections.abc import Iterator
from typing import Final

from gateway_mqtt.codec.data_types import read_binary, read_octet, utf8
from gateway_mqtt.codec.decoding import MAX_FILTERS
from gateway_mqtt.codec.encoding import packet
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import Properties, PropertyId, decode_properties, encode_properties

_SUBSCRIBE: Final = 0x82

#: Retain Handling 2: the client has got the retained messages already.
_NOTHING_RETAINED: Final = 0x20
_RETAIN_HANDLING: Final = 0x30

_REFUSED: Final = 0x80


class RelayedFilters:
    """Owns the options and the subscription identifier of each filter, and the requests that are not answered."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._by_filter: dict[bytes, tuple[int, int]] = {}
        self._asked: dict[int, list[tuple[bytes, int, int]]] = {}
        self._ended: dict[int, list[bytes]] = {}

    def subscribe(self, body: bytes) -> int:
        """Note a SUBSCRIBE; return its packet identifier. :raises MqttError: if it cannot be read."""
        packet_id, properties, at = self._begin(body, PacketType.SUBSCRIBE)
        identifier = properties.get(PropertyId.SUBSCRIPTION_IDENTIFIER, [0])[0]
        asked = []
        while at < len(body):
            filter, at = read_binary(body, at, len(body))
            options, at = read_octet(body, at, len(body))
            asked.append((filter, options, identifier))
        self._asked[packet_id] = asked
        return packet_id

    def unsubscribe(self, body: bytes) -> int:
        """Note an UNSUBSCRIBE; return its packet identifier. :raises MqttError: if it cannot be read."""
        packet_id, _, at = self._begin(body, PacketType.UNSUBSCRIBE)
        filters = []
        while at < len(body):
            filter, at = read_binary(body, at, len(body))
            filters.append(filter)
        self._ended[packet_id] = filters
        return packet_id

    def subscribed(self, body: bytes) -> int:
        """Handle a SUBACK: keep what was granted; return its packet identifier."""
        packet_id, _, at = self._begin(body, PacketType.SUBACK)
        for (filter, options, identifier), code in zip(self._asked.pop(packet_id, ()), body[at:], strict=False):
            if code < _REFUSED:
                self._by_filter[filter] = options, identifier
        return packet_id

    def unsubscribed(self, body: bytes) -> int:
        """Handle an UNSUBACK; return its packet identifier."""
        packet_id, _, _ = self._begin(body, PacketType.UNSUBACK)
        for filter in self._ended.pop(packet_id, ()):
            self._by_filter.pop(filter, None)
        return packet_id

    def again(self, packet_id: int) -> Iterator[bytes]:
        """Yield the SUBSCRIBE packets that make the subscriptions again, without retained messages."""
        by_identifier: dict[int, list[tuple[bytes, int]]] = {}
        for filter, (options, identifier) in self._by_filter.items():
            by_identifier.setdefault(identifier, []).append((filter, options))
        for identifier, filters in by_identifier.items():
            for first in range(0, len(filters), MAX_FILTERS):
                yield self._packet(packet_id, identifier, filters[first : first + MAX_FILTERS])

    def _packet(self, packet_id: int, identifier: int, filters: list[tuple[bytes, int]]) -> bytes:
        parts = [packet_id.to_bytes(2, "big")]
        if self._version == 5:
            parts.append(encode_properties({PropertyId.SUBSCRIPTION_IDENTIFIER: [identifier]} if identifier else {}))
        for filter, options in filters:
            parts += (utf8(filter.decode()), bytes((options & ~_RETAIN_HANDLING | _NOTHING_RETAINED,)))
        return packet(_SUBSCRIBE, b"".join(parts))

    def _begin(self, body: bytes, kind: PacketType) -> tuple[int, Properties, int]:
        packet_id = int.from_bytes(body[:2], "big")
        if self._version < 5:
            return packet_id, {}, 2
        return packet_id, *decode_properties(body, 2, len(body), kind)
