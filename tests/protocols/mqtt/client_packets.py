"""Encoding of client packets by hand from the specification's tables, independent of the codec."""

import struct
from collections.abc import Callable
from typing import Final, TypeVar

from hypothesis import strategies as st

from gateway_mqtt.codec.errors import MqttError

T = TypeVar("T")


def tried(read: Callable[[], T]) -> T | MqttError:
    """Return the result of ``read``, or the ``MqttError`` it raises. Any other exception fails the test."""
    try:
        return read()
    except MqttError as error:
        return error


def text(content: str | bytes) -> bytes:
    octets = content.encode() if isinstance(content, str) else content
    return struct.pack(">H", len(octets)) + octets


def block(*properties: bytes) -> bytes:
    """Return properties with their length, which must fit in one byte."""
    content = b"".join(properties)
    assert len(content) < 128
    return bytes((len(content),)) + content


def connect(
    *,
    name: str = "MQTT",
    level: int = 5,
    flags: int = 0x02,
    keep_alive: int = 60,
    properties: bytes = b"\0",
    payload: bytes = text("client"),
) -> bytes:
    """Return the body of a CONNECT."""
    head = text(name) + struct.pack(">BBH", level, flags, keep_alive)
    return head + (properties if level == 5 else b"") + payload


def user_property(name: str, value: str) -> bytes:
    return b"\x26" + text(name) + text(value)


#: Valid MQTT strings (1.5.4).
mqtt_text: Final = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)

#: Topic names with characters that have a meaning in MQTT, in AMQP or in the escaping.
topics: Final = st.text(
    st.sampled_from("ab/.*%25EA$ é\ufeff") | st.characters(codec="utf-8", exclude_characters="\0+#"),
    min_size=1,
    max_size=30,
)

_levels: Final = st.just("+") | st.text(st.sampled_from("ab.*%25EA$ é"), max_size=6)

filters: Final = st.builds(
    lambda levels, ends_open: "/".join([*levels, "#"] if ends_open else levels) or "/",
    st.lists(_levels, max_size=5),
    st.booleans(),
)
