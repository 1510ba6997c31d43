"""Sessions of MQTT clients of 3.1.1 and 5.0, as paho and mqtt.js write them."""

from typing import Final

from tests.fuzz.mutating import Session
from tests.fuzz.sandbox import PASSWORD, USER, VHOST


def packet(first: int, payload: bytes) -> bytes:
    """Return a packet with its remaining length."""
    length, size = bytearray(), len(payload)
    while True:
        size, digit = divmod(size, 128)
        length.append(digit | (0x80 if size else 0))
        if not size:
            return bytes([first]) + bytes(length) + payload


def text(value: str) -> bytes:
    """Return a string with its length."""
    encoded = value.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def connect(
    client_id: str,
    *,
    level: int = 4,
    flags: int = 0xC2,
    properties: bytes = b"",
    will: bytes = b"",
    user: str = f"{VHOST}:{USER}",
    password: str = PASSWORD,
) -> bytes:
    """Return a CONNECT with a user name and a password."""
    head = text("MQTT") + bytes([level, flags]) + (60).to_bytes(2, "big")
    encoded = bytes([len(properties)]) + properties if level == 5 else b""
    return packet(0x10, head + encoded + text(client_id) + will + text(user) + text(password))


def publish(topic: str, body: bytes, *, qos: int = 0, id: int = 1, retain: bool = False, five: bool = False) -> bytes:
    """Return a PUBLISH."""
    number = id.to_bytes(2, "big") if qos else b""
    properties = b"\x01\x01\x02\x00\x00\x00\x3c\x26" + text("k") + text("v") if five else b""
    encoded = bytes([len(properties)]) + properties if five else b""
    return packet(0x30 | qos << 1 | retain, text(topic) + number + encoded + body)


_SUBSCRIBE: Final = packet(0x82, b"\0\x01" + text("fuzz/#") + b"\x01")
_DISCONNECT: Final = packet(0xE0, b"")

SESSIONS: Final[tuple[Session, ...]] = (
    (
        connect("fuzz-1"),
        _SUBSCRIBE,
        publish("fuzz/a", b"hello"),
        publish("fuzz/a/b", b"again", qos=1, id=2, retain=True),
        packet(0x40, b"\0\x01"),
        packet(0xC0, b""),
        packet(0xA2, b"\0\x03" + text("fuzz/#")),
        _DISCONNECT,
    ),
    (
        connect("fuzz-2", flags=0xC4 | 0x28, will=text("fuzz/will") + text("gone")),
        packet(0x82, b"\0\x01" + text("fuzz/+/b") + b"\x02" + text("$SYS/#") + b"\0"),
        publish("fuzz/c/b", b"x" * 3000, qos=2, id=7),
        packet(0x62, b"\0\x07"),
        packet(0x50, b"\0\x01"),
        packet(0x70, b"\0\x01"),
    ),
    (
        connect("fuzz-3", level=5, properties=b"\x11\0\0\0\x3c\x21\0\x0a\x22\0\x0a"),
        packet(0x82, b"\0\x01\x02\x0b\x05" + text("$share/g/fuzz/#") + b"\x01" + text("fuzz/x") + b"\x2e"),
        publish("fuzz/x", b"{}", qos=1, id=3, five=True),
        packet(0x30, text("fuzz/alias") + b"\x03\x23\0\x01" + b"one"),
        packet(0x30, text("") + b"\x03\x23\0\x01" + b"two"),
        packet(0x40, b"\0\x01\x10\0"),
        packet(0xE0, b"\x04\x05\x11\0\0\0\0"),
    ),
    (connect("fuzz-4"), _SUBSCRIBE, publish("fuzz/r", b"", retain=True), _DISCONNECT),
)

#: Sessions that end before their login.
REFUSED: Final[tuple[Session, ...]] = (
    (
        connect("", level=5, properties=b"\x15" + text("SCRAM-SHA-256") + b"\x16" + text("n,,n=a,r=b")),
        packet(0xF0, b"\x18\x10\x15" + text("SCRAM-SHA-256")),
        packet(0x82, b"\0\x01\0" + text("#") + b"\0"),
    ),
)
