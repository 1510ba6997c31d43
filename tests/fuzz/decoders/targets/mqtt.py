"""Decoders of MQTT 3.1, 3.1.1 and 5: fixed headers, packets, properties, topics, stored headers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.kernel.errors import ProtocolViolation
from gateway.kernel.messages.message import HeaderEdit
from gateway_mqtt import not_ready
from gateway_mqtt.codec import data_types, encoding
from gateway_mqtt.codec.data_types import text_of as mqtt_text
from gateway_mqtt.codec.data_types import utf8, varint
from gateway_mqtt.codec.decoding import (
    connect_version,
    decode_ack,
    decode_auth,
    decode_connect,
    decode_disconnect,
    decode_subscribe,
    decode_unsubscribe,
)
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.incoming import IncomingPackets, remaining_length
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import decode_properties, encode_properties, read_block, write_block
from gateway_mqtt.codec.publish import decode_publish, scan_publish_properties, without_alias, without_expiry
from gateway_mqtt.translation.header import MqttHeaderFormat, mqtt_header
from gateway_mqtt.translation.properties import kernel_properties, mqtt_properties
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE, check_topic, parse_filter
from tests.fuzz.decoders.corpus import TO_BROKER, frames_of
from tests.fuzz.decoders.laws import attempt, refused, require, require_any_cut, require_same, text_of
from tests.fuzz.decoders.target import Target

TOKENS: Final = (
    b"\0\4MQTT\4", b"\0\4MQTT\5", b"\0\6MQIsdp\3", b"\x10", b"\x30", b"\x32", b"\x3d", b"\x40", b"\x62", b"\x82",
    b"\xa2", b"\xe0", b"\xf0", b"\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x01", b"\0\0", b"\0\1", b"\0\1t", b"$share/g/",
    b"$SYS/", b"#", b"+", b"/", b"%2E", b"%25", b"\x01\x01", b"\x02\0\0\0\1", b"\x03\0\1a", b"\x08\0\1r", b"\x09\0\1c",
    b"\x0b\1", b"\x11\0\0\0\5", b"\x15\0\5PLAIN", b"\x16\0\1x", b"\x1f\0\1x", b"\x21\0\1", b"\x23\0\1",
    b"\x26\0\1a\0\1b", b"\x27\0\0\0\1", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf",
)  # fmt: skip

_VERSIONS: Final = (3, 4, 5)
#: An edit of a stored header.
_EDIT: Final = HeaderEdit({"x-death": [1]}, ("a",), drops_expiration=True)
_LIMIT: Final = 1 << 20
_CARRIERS: Final = tuple(PacketType)
_ACKS: Final = (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)


def _fixed_headers(data: bytes) -> None:
    """Packets are found in a stream of bytes however it is cut."""
    require_any_cut(data, _packets)
    for at in range(min(len(data), 4)):
        length = attempt(MqttError, data_types.read_varint, data, at)
        if not refused(length) and length is not None:
            again = data_types.read_varint(varint(length[0]), 0)
            require(again is not None and again[0] == length[0], "a variable integer is encoded as it was decoded")
        attempt(MqttError, data_types.read_bounded_varint, data, at, len(data))
    if data:
        answer = not_ready.refusal(data, "the node starts")
        require(answer is None or len(answer) < 256, "a refusal is short")


def _packets(pieces: Sequence[bytes]) -> object:
    """Return first byte and body of each packet, as the connection assembles them, and the refusal if there is one."""
    found: list[object] = []
    incoming: IncomingPackets | None = None
    for piece in pieces:
        data = piece if incoming is None else incoming.feed(piece)
        if not data:
            continue
        at, incoming = 0, None
        while at < len(data):
            head = attempt(MqttError, remaining_length, data, at, len(data), _LIMIT)
            if refused(head):
                return [*found, head]
            if head is None:
                incoming = IncomingPackets(data[at:], 1)
                break
            length, start = head
            if start + length > len(data):
                incoming = IncomingPackets(data[at:], start + length - len(data))
                break
            found.append((data[at], data[start : start + length]))
            at = start + length
    return found


def _connect(data: bytes) -> None:
    """CONNECT is refused in a version that exists; what is accepted names one."""
    version = connect_version(data)
    require(version in _VERSIONS, "a CONNECT is refused in a version that exists", version)
    connect = attempt(MqttError, decode_connect, data)
    if not refused(connect):
        require_same("both readers find the version", connect.version, version)
        require_same("text is encoded as it was decoded", mqtt_text(utf8(connect.client_id)[2:]), connect.client_id)
        encode_properties(connect.properties)
        if connect.will is not None:
            utf8(connect.will.topic)
            encode_properties(connect.will.properties)
    attempt(MqttError, decode_connect, data[1:], data[0] if data else 0)


def _packet(data: bytes) -> None:
    """Bodies of all packets but CONNECT and PUBLISH, after a byte with version and type; acknowledgements encode."""
    if not data:
        return
    version, kind, flags = _VERSIONS[data[0] & 3 if data[0] & 3 < 3 else 0], data[0] >> 2 & 7, data[0] >> 5
    body = data[1:]
    if kind < 4:
        acked = attempt(MqttError, decode_ack, version, _ACKS[kind], body)
        if not refused(acked):
            encoded = encoding.ack(_ACKS[kind], version, *acked)
            require_same("an acknowledgement is encoded as it was decoded", _decoded_ack(version, encoded), acked)
    elif kind == 4:
        subscribe = attempt(MqttError, decode_subscribe, version, flags, body)
        if not refused(subscribe):
            require(len(subscribe.filters) > 0, "a SUBSCRIBE has a filter")
            _filters([each.filter for each in subscribe.filters])
    elif kind == 5:
        unsubscribe = attempt(MqttError, decode_unsubscribe, version, flags, body)
        if not refused(unsubscribe):
            _filters(unsubscribe.filters)
    elif kind == 6:
        disconnect = attempt(MqttError, decode_disconnect, version, flags, body)
        if not refused(disconnect):
            encoding.disconnect(version, disconnect.reason, disconnect.properties)
    else:
        auth = attempt(MqttError, decode_auth, version, flags, body)
        if not refused(auth):
            encoding.auth(auth.reason, auth.properties)


def _decoded_ack(version: int, encoded: bytes) -> object:
    head = remaining_length(encoded, 0, len(encoded), _LIMIT)
    assert head is not None
    return decode_ack(version, encoded[0] >> 4, encoded[head[1] :])


def _filters(filters: Iterable[str]) -> None:
    for each in filters:
        attempt(MqttError, parse_filter, each)


def _properties(data: bytes) -> None:
    """Properties of each packet type are encoded as they were decoded; edits of a PUBLISH keep the rest."""
    if not data:
        return
    carrier, block = _CARRIERS[data[0] % len(_CARRIERS)], data[1:]
    sized = attempt(MqttError, decode_properties, block, 0, len(block), carrier)
    if not refused(sized):
        again = encode_properties(sized[0])
        require_same("properties are encoded as they were decoded",
                     decode_properties(again, 0, len(again), carrier)[0], sized[0])  # fmt: skip
    plain = attempt(MqttError, read_block, block, 0, len(block), carrier)
    if not refused(plain):
        again = write_block(plain)
        require_same("a block is encoded as it was decoded", read_block(again, 0, len(again), carrier), plain)
    scanned = attempt(MqttError, scan_publish_properties, block)
    if not refused(scanned):
        require(scan_publish_properties(without_alias(block)).topic_alias == 0, "an alias is removed")
        require(scan_publish_properties(without_expiry(block)).message_expiry_s is None, "an expiry is removed")
        for mapping in (REVERSIBLE, LOSSY):
            mqtt_properties(kernel_properties(scanned, 1, mapping, {}), mapping)


def _data_types(data: bytes) -> None:
    """Strings and numbers are encoded as they were decoded."""
    end = len(data)
    for read in (data_types.read_octet, data_types.read_u16, data_types.read_u32):
        attempt(MqttError, read, data, 0, end)
    octets = attempt(MqttError, data_types.read_binary, data, 0, end)
    if not refused(octets):
        require(data_types.binary(octets[0]) == data[: octets[1]], "binary data is encoded as it was decoded")
    text = attempt(MqttError, data_types.read_utf8, data, 0, end)
    if not refused(text):
        require(utf8(text[0]) == data[: text[1]], "a string is encoded as it was decoded")
    attempt(MqttError, mqtt_text, data)


def _publish(data: bytes) -> None:
    """A PUBLISH, after a byte with version and flags, lies inside its bytes."""
    if not data:
        return
    version, flags = _VERSIONS[data[0] >> 4 & 1] if data[0] & 0x20 else 5, data[0] & 15
    found = attempt(MqttError, decode_publish, version, flags, data, 1, len(data))
    if refused(found):
        return
    topic, packet_id, properties_at, payload_at = found
    require(1 <= properties_at <= payload_at <= len(data), "the parts of a PUBLISH are inside it", found)
    require(bool(packet_id) == bool(flags & 6), "a PUBLISH with QoS has an identifier", found)
    if version == 5:
        attempt(MqttError, scan_publish_properties, data[properties_at:payload_at])
    name = attempt(MqttError, mqtt_text, topic)
    if not refused(name):
        attempt(MqttError, check_topic, name)


def _topics(data: bytes) -> None:
    """Topics and filters come back from routing keys and binding keys."""
    text = text_of(data)
    found = attempt(MqttError, parse_filter, text)
    is_topic = not refused(attempt(MqttError, check_topic, text))
    if is_topic:
        require_same("a topic comes back from its routing key", REVERSIBLE.topic(REVERSIBLE.routing_key(text)), text)
        require(not refused(found) or text.startswith("$share/"), "a topic is a filter", text)
    if not refused(found):
        filter = found[1]
        require_same(
            "a filter comes back from its binding key", REVERSIBLE.filter(REVERSIBLE.binding_key(filter)), filter
        )
    for mapping in (REVERSIBLE, LOSSY):
        topic = mapping.topic(text)  # a routing key of another protocol
        require(not refused(attempt(MqttError, check_topic, topic)), "any routing key is a valid topic", text, topic)
        mapping.filter(text)


def _header(data: bytes) -> None:
    """A stored header is decoded, or refused by all readers; edits are decoded again."""
    form = MqttHeaderFormat()
    properties = attempt(ProtocolViolation, form.properties, data)
    header = attempt(ProtocolViolation, form.header, data)
    edited = attempt(ProtocolViolation, form.edited, data, _EDIT)
    form.stamped(data, 1)
    if refused(properties) or refused(edited):
        return
    require(not refused(header), "all readers accept", header)
    again = form.properties(edited)
    require(again.headers["x-death"] == [1] and again.expiration is None, "a header is edited", again)
    form.header(edited)


# ---- Seeds ----------------------------------------------------------------------------------------------------------


def _bodies(*wanted: PacketType) -> Iterator[tuple[int, bytes]]:
    """Yield first byte and body of the recorded packets of some types; of all, if none is named."""
    for frame in frames_of("mqtt", TO_BROKER):
        head = attempt(MqttError, remaining_length, frame, 0, len(frame), _LIMIT)
        if not refused(head) and head is not None and (not wanted or frame[0] >> 4 in wanted):
            yield frame[0], frame[head[1] :]


def _stream_seeds() -> Iterable[bytes]:
    frames = frames_of("mqtt")
    yield from frames
    yield from (b"".join(frames[at : at + 3]) for at in range(0, len(frames), 3))
    yield b"\xc0\0\xe0\0"


def _connect_seeds() -> Iterable[bytes]:
    yield from (body for _, body in _bodies(PacketType.CONNECT))
    yield b"\0\4MQTT\5\xc6\0\x3c\x05\x11\0\0\0\x0a\0\1c\0\0\1w\0\1p\0\1u\0\1p"
    yield b"\0\6MQIsdp\3\2\0\x3c\0\1c"


def _packet_seeds() -> Iterable[bytes]:
    kinds = [*_ACKS, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE, PacketType.DISCONNECT, PacketType.AUTH]
    for first, body in _bodies(*kinds):
        for version in range(3):
            yield bytes((version | kinds.index(PacketType(first >> 4)) << 2 | (first & 7) << 5,)) + body
    yield b"\x02\0\1\x10\x00"
    yield b"\x02\0\1\x80\x04\x1f\0\1x"
    yield b"\x52\0\1\x02\x0b\1\0\1a\1"
    yield b"\x56\0\1\0\0\1a"
    yield b"\x1a\x04\x05\x11\0\0\0\1"
    yield b"\x1e\x18\x04\x15\0\1x"


def _property_seeds() -> Iterable[bytes]:
    blocks = (
        b"\x01\1\x02\0\0\0\5\x03\0\3a/b\x08\0\1r\x09\0\1c\x23\0\1\x26\0\1a\0\1b\x26\0\1a\0\1c",
        b"\x11\0\0\0\x0a\x15\0\1x\x16\0\1y\x17\1\x19\1\x21\0\5\x22\0\5\x27\0\1\0\0",
        b"\x1f\0\4text\x26\0\1a\0\1b",
        b"\x0b\x81\1\x26\0\1a\0\1b",
        b"\x18\0\0\0\5\x01\1\x02\0\0\0\5\x08\0\1r\x09\0\1c",
        b"\x12\0\1c\x1a\0\1r\x1c\0\1s\x24\1\x25\1\x28\1\x29\1\x2a\1\x13\0\5",
    )
    for at in range(len(_CARRIERS)):
        for block in blocks:
            yield bytes((at,)) + block
            yield bytes((at,)) + varint(len(block)) + block
    for first, body in _bodies(PacketType.PUBLISH):
        found = attempt(MqttError, decode_publish, 5, first & 15, body, 0, len(body))
        if not refused(found) and found[3] > found[2]:
            yield bytes((_CARRIERS.index(PacketType.PUBLISH),)) + body[found[2] : found[3]]


def _publish_seeds() -> Iterable[bytes]:
    for first, body in _bodies(PacketType.PUBLISH):
        yield bytes((0x30 | first & 15,)) + body
        yield bytes((first & 15,)) + body
    yield b"\x02\0\1t\0\1\x03\x23\0\1hi"


def _topic_seeds() -> Iterable[bytes]:
    yield from (b"a/b", b"a/+/#", b"$share/g/a/#", b"$SYS/x", b"a.b*c%2Ed", b"/", b"//", b"+", b"#", "ü/€".encode())


def _header_seeds() -> Iterable[bytes]:
    for retain in (False, True):
        yield mqtt_header(1, retain, True, "c", b"\x26\0\1a\0\1b\x02\0\0\0\5\x08\0\1r", arrived_at_ms=1).raw
        yield mqtt_header(0, retain, False, "", b"").raw
    header = mqtt_header(2, False, True, "c", b"")
    yield header.edited({"x-death": [{"count": 1}]}).raw


TARGETS: Final = (
    Target(
        "mqtt-fixed-headers",
        _fixed_headers,
        (
            "gateway_mqtt.codec.incoming:IncomingPackets.feed", "gateway_mqtt.codec.incoming:remaining_length",
            "gateway_mqtt.codec.data_types:read_varint", "gateway_mqtt.codec.data_types:read_bounded_varint",
            "gateway_mqtt.not_ready:refusal",
        ),
        _stream_seeds,
        TOKENS,
        longest=1024,
    ),
    Target(
        "mqtt-connect",
        _connect,
        ("gateway_mqtt.codec.connecting:connect_version", "gateway_mqtt.codec.connecting:decode_connect"),
        _connect_seeds,
        TOKENS,
    ),
    Target(
        "mqtt-packets",
        _packet,
        (
            "gateway_mqtt.codec.decoding:decode_ack", "gateway_mqtt.codec.decoding:decode_subscribe",
            "gateway_mqtt.codec.decoding:decode_unsubscribe", "gateway_mqtt.codec.decoding:decode_disconnect",
            "gateway_mqtt.codec.decoding:decode_auth",
        ),
        _packet_seeds,
        TOKENS,
    ),
    Target(
        "mqtt-properties",
        _properties,
        (
            "gateway_mqtt.codec.properties:decode_properties", "gateway_mqtt.codec.properties:read_block",
            "gateway_mqtt.codec.publish:scan_publish_properties", "gateway_mqtt.codec.publish:without_alias",
            "gateway_mqtt.codec.publish:without_expiry",
        ),
        _property_seeds,
        TOKENS,
    ),
    Target(
        "mqtt-data-types",
        _data_types,
        (
            "gateway_mqtt.codec.data_types:read_octet", "gateway_mqtt.codec.data_types:read_u16",
            "gateway_mqtt.codec.data_types:read_u32", "gateway_mqtt.codec.data_types:read_binary",
            "gateway_mqtt.codec.data_types:read_utf8", "gateway_mqtt.codec.data_types:text_of",
            "gateway_mqtt.codec.data_types:binary",
        ),
        lambda: (b"\0\3abc", b"\0\2\xc3\xbc", b"\0\0", b"\1\2\3\4"),
        TOKENS,
    ),
    Target("mqtt-publish", _publish, ("gateway_mqtt.codec.publish:decode_publish",), _publish_seeds, TOKENS),
    Target(
        "mqtt-topics",
        _topics,
        ("gateway_mqtt.translation.topics:parse_filter", "gateway_mqtt.translation.topics:check_topic"),
        _topic_seeds,
        TOKENS,
    ),
    Target(
        "mqtt-stored-header",
        _header,
        (
            "gateway_mqtt.translation.header:MqttHeaderFormat.header",
            "gateway_mqtt.translation.header:MqttHeaderFormat.properties",
            "gateway_mqtt.translation.header:MqttHeaderFormat.edited",
            "gateway_mqtt.translation.header:MqttHeaderFormat.stamped",
        ),
        _header_seeds,
        TOKENS,
    ),
)  # fmt: skip
