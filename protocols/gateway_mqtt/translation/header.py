"""The stored header of a message from MQTT: QoS, retain flag, publisher and properties.

Its stored form is a fixed part (``_LAYOUT``), the client identifier, the property block of the PUBLISH without a topic
alias, and the headers that the broker added (:func:`gateway.kernel.messages.values.dumps`).
"""

from collections.abc import Collection
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from gateway.kernel.messages.message import Header, HeaderEdit, Properties, Value
from gateway.kernel.messages.values import dumps, loads
from gateway_mqtt.codec.errors import malformed
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId, read_block, write_block
from gateway_mqtt.codec.publish import scan_publish_properties, without_expiry
from gateway_mqtt.translation.delivery_view import DeliveryView
from gateway_mqtt.translation.properties import REPLY_TO_TOPIC, kernel_properties
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE, TopicMapping

MAX_SHARED: Final = 8192
"""The limit of shared headers, a few for each client; the cache is cleared when it is full."""

MAX_SHARED_BYTES: Final = 512
"""Longer headers, in bytes, are not shared, because they seldom repeat."""

#: Layout number, flags, time of arrival, subscription identifier, sizes of client identifier and block.
_LAYOUT: Final = Struct(">BBQIHI")
_NUMBER: Final = 1

_QOS: Final = 0x03
_RETAINED: Final = 0x04
_V5: Final = 0x08
_COPY: Final = 0x10
_LOSSY: Final = 0x20


class HeaderFields(NamedTuple):
    """The fields of a header.

    ``arrived_at_ms`` is Unix time in milliseconds, 0 for messages that do not expire; ``identifier`` is the
    subscription for which a retained message was copied, 0 for none; ``added`` are the encoded headers that the broker
    added.
    """

    flags: int
    arrived_at_ms: int
    identifier: int
    client_id: bytes
    block: bytes
    added: bytes

    def packed(self) -> bytes:
        """Encode the header."""
        sizes = len(self.client_id), len(self.block)
        fixed = _LAYOUT.pack(_NUMBER, self.flags, self.arrived_at_ms, self.identifier, *sizes)
        return fixed + self.client_id + self.block + self.added


class MqttHeader(Header):
    """A header with the fields that deliveries to MQTT clients need.

    ``is_plain`` means that all subscribers see the message alike: it is not retained and does not expire. ``is_copy``
    marks a retained message sent for a new subscription. ``view`` is a cache of
    :func:`gateway_mqtt.translation.views.delivery_view_of`.
    """

    __slots__ = ("expiry_s", "fields", "is_copy", "is_plain", "is_retained", "qos", "view")

    def __init__(self, raw: bytes, fields: HeaderFields, expiry_s: int | None) -> None:
        qos = fields.flags & _QOS
        super().__init__(MQTT, raw, is_persistent=qos > 0, expiration_ms=None if expiry_s is None else expiry_s * 1000)
        self.fields = fields
        self.qos = qos
        self.expiry_s = expiry_s
        self.is_retained = bool(fields.flags & _RETAINED)
        self.is_copy = bool(fields.flags & _COPY)
        self.is_plain = expiry_s is None and not fields.flags & (_RETAINED | _COPY)
        self.view: DeliveryView | None = None


class MqttHeaderFormat:
    """The header format of MQTT messages. Owns the shared headers."""

    name: str = "mqtt"

    def __init__(self) -> None:
        self._shared: dict[bytes, MqttHeader] = {}
        self._published: dict[tuple[int, bytes, bytes, bytes], MqttHeader] = {}

    def header(self, raw: bytes) -> MqttHeader:
        """Return the header of these bytes. :raises MqttError: if this version did not write them."""
        return self._shared.get(raw) or self._read(raw)

    def published(
        self, flags: int, client_id: bytes, block: bytes, arrived_at_ms: int, added: bytes = b""
    ) -> MqttHeader:
        """Return the header of a published message. :raises MqttError: if the property block is invalid."""
        header = self._published.get((flags, client_id, block, added))
        return header or self._enter(flags, client_id, block, arrived_at_ms, added)

    def properties(self, raw: bytes) -> Properties:
        """Translate to kernel properties. :raises MqttError: if this version did not write the bytes."""
        fields = _parse(raw)
        mapping = mapping_of(fields)
        properties = scan_publish_properties(fields.block)
        return kernel_properties(properties, fields.flags & _QOS, mapping, added_headers(fields))

    def edited(self, raw: bytes, edit: HeaderEdit) -> bytes:
        """Return the bytes as edited.

        User properties of these names are removed too, so that consumers do not read an old value.
        """
        fields = _parse(raw)
        replaced = {*edit.without, *edit.headers}
        block = _without_user_properties(fields.block, replaced)
        kept = {name: value for name, value in added_headers(fields).items() if name not in replaced}
        added = kept | dict(edit.headers)
        return fields._replace(
            block=without_expiry(block) if edit.drops_expiration else block,
            arrived_at_ms=0 if edit.drops_expiration else fields.arrived_at_ms,
            added=dumps(added) if added else b"",
        ).packed()

    def stamped(self, raw: bytes, timestamp_s: int) -> bytes:
        """Return the bytes unchanged: MQTT has no timestamp."""
        return raw

    def _read(self, raw: bytes) -> MqttHeader:
        fields = _parse(raw)
        return self._create_header(raw, fields, scan_publish_properties(fields.block).message_expiry_s)

    def _enter(self, flags: int, client_id: bytes, block: bytes, arrived_at_ms: int, added: bytes) -> MqttHeader:
        expiry_s = scan_publish_properties(block).message_expiry_s
        if expiry_s is not None:
            fields = HeaderFields(flags, arrived_at_ms, 0, client_id, block, added)
            return MqttHeader(fields.packed(), fields, expiry_s)
        fields = HeaderFields(flags, 0, 0, client_id, block, added)
        raw = fields.packed()
        header = self._shared.get(raw) or self._create_header(raw, fields, None)
        if raw in self._shared:
            self._published[flags, client_id, block, added] = header
        return header

    def _create_header(self, raw: bytes, fields: HeaderFields, expiry_s: int | None) -> MqttHeader:
        header = MqttHeader(raw, fields, expiry_s)
        if len(raw) <= MAX_SHARED_BYTES:
            if len(self._shared) >= MAX_SHARED:
                self._shared.clear()
                self._published.clear()
            self._shared[raw] = header
        return header


MQTT: Final = MqttHeaderFormat()
"""The only format object of the process; it shares every MQTT header."""


def mqtt_header(
    qos: int,
    retain: bool,
    version5: bool,
    client_id: str,
    block: bytes,
    *,
    arrived_at_ms: int = 0,
    mapping: TopicMapping = REVERSIBLE,
) -> MqttHeader:
    """Return the header of a message; it is shared unless the message expires.

    ``block`` are the properties without length and topic alias, empty before 5.0.

    :raises MqttError: as :func:`gateway_mqtt.codec.publish.scan_publish_properties`.
    """
    flags = qos | (_RETAINED if retain else 0) | (_V5 if version5 else 0) | (_LOSSY if mapping.is_lossy else 0)
    added = _prefixed_reply(block, mapping) if mapping.prefix and block else b""
    return MQTT.published(flags, client_id.encode(), block, arrived_at_ms, added)


def _prefixed_reply(block: bytes, mapping: TopicMapping) -> bytes:
    """Return the header with the routing key of the response topic, encoded: the other protocols need the prefix."""
    topic = scan_publish_properties(block).response_topic
    return b"" if topic is None else dumps({REPLY_TO_TOPIC: mapping.routing_key(topic)})


def retained_header(header: Header, identifier: int, now_ms: int) -> MqttHeader:
    """Return the header of a retained message for a new subscription with this identifier, 0 for none.

    The remaining expiry interval starts now, because the queue does not know how long the message was retained.
    """
    fields = _parse(header.raw)
    properties = read_block(fields.block, 0, len(fields.block), PacketType.PUBLISH)
    expiry_s = properties.get(PropertyId.MESSAGE_EXPIRY_INTERVAL)
    if expiry_s is not None and fields.arrived_at_ms:
        waited_s = max(0, now_ms - fields.arrived_at_ms) // 1000
        properties[PropertyId.MESSAGE_EXPIRY_INTERVAL] = max(0, expiry_s - waited_s)
        fields = fields._replace(arrived_at_ms=now_ms, block=write_block(properties))
    return MQTT.header(fields._replace(flags=fields.flags | _COPY, identifier=identifier).packed())


def mapping_of(fields: HeaderFields) -> TopicMapping:
    """Return the mapping by which the message's topic became its routing key."""
    return LOSSY if fields.flags & _LOSSY else REVERSIBLE


def added_headers(fields: HeaderFields) -> dict[str, Value]:
    """Return the headers that the broker added. :raises MqttError: if this version did not write them."""
    try:
        return loads(fields.added) if fields.added else {}
    except ValueError as flaw:
        raise malformed(f"the headers added to a message: {flaw}") from None


def _parse(raw: bytes) -> HeaderFields:
    try:
        number, flags, arrived_at_ms, identifier, client_id_size, block_size = _LAYOUT.unpack_from(raw)
    except struct_error:
        raise malformed(f"stored header of {len(raw)} bytes is too short") from None
    block_start = _LAYOUT.size + client_id_size
    end = block_start + block_size
    if number != _NUMBER or end > len(raw):
        raise malformed(f"stored header of unknown layout {number} or wrong size {len(raw)}")
    return HeaderFields(
        flags, arrived_at_ms, identifier, raw[_LAYOUT.size : block_start], raw[block_start:end], raw[end:]
    )


def _without_user_properties(block: bytes, names: Collection[str]) -> bytes:
    properties = read_block(block, 0, len(block), PacketType.PUBLISH)
    pairs = properties.pop(PropertyId.USER_PROPERTY, [])
    kept = [pair for pair in pairs if pair[0] not in names]
    if len(kept) == len(pairs):
        return block
    return write_block(properties | ({PropertyId.USER_PROPERTY: kept} if kept else {}))
