"""Headers that are put into columns directly, beside the same headers by way of their properties."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gateway.columnar.encoding.envelope_columns import as_json
from gateway.columnar.encoding.envelope_reader import EnvelopeReader
from gateway.columnar.encoding.formats import envelope_decoder, envelope_reader
from gateway.columnar.encoding.messages import MessageColumns
from gateway.kernel.messages.chunks import encode_chunk
from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Properties, Value
from gateway.kernel.messages.native_header import NATIVE
from gateway.kernel.messages.stored_message import StoredMessage
from gateway.kernel.messages.values import dumps, loads
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties
from gateway_mqtt.translation.header import MQTT, mqtt_header
from tests.columnar.streams import NOON_MS

SHORT = st.text(max_size=60)
#: Text with lone surrogates, too.
ANY_TEXT = st.text(st.characters(), max_size=20)

VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | SHORT | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHORT, inner, max_size=3),
    max_leaves=5,
)
DEATHS = st.fixed_dictionaries({"queue": SHORT, "reason": SHORT, "count": st.integers(0, 9)})
HEADERS = st.dictionaries(
    st.sampled_from(["CC", "BCC", "x-death", "device", "traceparent"]),
    VALUES | st.lists(SHORT, max_size=2) | st.lists(DEATHS, max_size=2),
    max_size=3,
)
EXPIRATIONS = st.sampled_from(["0", "60000", "-1", "soon", "1x", "99999999999999"])
TIMES = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(
    lambda time: time.replace(microsecond=0, tzinfo=UTC)
)
PROPERTIES = st.builds(
    Properties,
    content_type=st.none() | SHORT,
    content_encoding=st.none() | SHORT,
    headers=HEADERS,
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    correlation_id=st.none() | SHORT,
    reply_to=st.none() | SHORT,
    expiration=st.none() | EXPIRATIONS,
    message_id=st.none() | SHORT,
    timestamp=st.none() | TIMES,
    type=st.none() | SHORT,
    user_id=st.none() | SHORT,
    app_id=st.none() | SHORT,
    cluster_id=st.none() | SHORT,
)


@st.composite
def damaged(draw: st.DrawFn, headers: st.SearchStrategy[bytes]) -> bytes:
    """Return a header with some bytes replaced, or cut off."""
    header = bytearray(draw(headers))
    for at, octet in draw(st.dictionaries(st.integers(0, 60), st.integers(0, 255), max_size=3)).items():
        if at < len(header):
            header[at] = octet
    return bytes(header[: draw(st.integers(0, len(header)))])


AMQP_HEADERS = PROPERTIES.map(encode_properties)
MQTT_HEADERS = st.builds(
    lambda qos, retain, client_id: mqtt_header(qos, retain, False, client_id, b"").raw,
    st.integers(0, 2),
    st.booleans(),
    SHORT,
)
MQTT5_HEADERS = st.builds(
    lambda qos, client_id: mqtt_header(qos, False, True, client_id, b"\x26\x00\x01a\x00\x01b").raw,
    st.integers(0, 2),
    SHORT,
)
STORED = st.one_of(
    *(
        st.builds(StoredMessage, ANY_TEXT, ANY_TEXT, st.just(name), headers | damaged(headers), st.binary(max_size=9))
        for name, headers in (
            (AMQP.name, AMQP_HEADERS),
            (MQTT.name, MQTT_HEADERS | MQTT5_HEADERS),
            (NATIVE.name, st.binary(max_size=9)),
            ("unknown", st.binary(max_size=9)),
        )
    )
)


def record(stored: StoredMessage) -> bytes:
    """Return the content of a message with an unchecked header."""
    names = stored.exchange, stored.routing_key
    sizes = [len(each.encode("utf-8", "surrogatepass")) for each in names]
    texts = b"".join(each.encode("utf-8", "surrogatepass") for each in names)
    kind = stored.header_format.encode()
    lengths = b"\x01" + b"".join(size.to_bytes(2, "big") for size in sizes) + bytes([len(kind)])
    return lengths + len(stored.header).to_bytes(4, "big") + texts + kind + stored.header + stored.body


@given(st.lists(STORED, min_size=1, max_size=12))
def test_direct_columns_equal_those_of_the_properties(messages: list[StoredMessage]) -> None:
    data = encode_chunk(0, [(NOON_MS, b"", record(each)) for each in messages])
    of_properties = MessageColumns(EnvelopeReader(envelope_decoder(), {}))
    [expected] = of_properties.pieces([data], 0, 99, vhost="/", queue="q")
    direct = MessageColumns(envelope_reader())
    for _ in range(2):  # the second time with warm caches
        [found] = direct.pieces([data], 0, 99, vhost="/", queue="q")
        assert found.batch.to_pylist() == expected.batch.to_pylist()
        assert found.batch.equals(expected.batch)


FLAT = st.dictionaries(
    ANY_TEXT | st.just("$"),
    ANY_TEXT | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.just(Long(5)) | st.none(),
    max_size=4,
)


@given(FLAT)
def test_headers_in_json_are_those_of_the_store(headers: dict[str, Value]) -> None:
    written = as_json(headers)
    assert loads(written.encode()) == headers  # a lone surrogate is an escape, which UTF-8 can encode
    stored = dumps(headers).decode("utf-8", "surrogatepass")
    assert written == stored or (not _is_encodable(stored) and json.loads(written) == json.loads(stored))


def _is_encodable(text: str) -> bool:
    return all(not "\ud800" <= character <= "\udfff" for character in text)
