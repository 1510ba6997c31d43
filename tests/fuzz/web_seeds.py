"""WebSocket sessions: the handshake, and the frames of another protocol in masked messages."""

from collections.abc import Sequence
from typing import Final

from tests.fuzz import mqtt_seeds, stomp_seeds
from tests.fuzz.mutating import Session

_MASK: Final = b"\x37\xfa\x21\x3d"


def handshake(protocol: str) -> bytes:
    """Return the request that opens a WebSocket."""
    lines = [
        "GET /ws HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: {protocol}",
        "Sec-WebSocket-Version: 13",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def message(payload: bytes, first: int = 0x82) -> bytes:
    """Return a masked frame, by default a whole binary message."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65_536:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    masked = bytes(octet ^ _MASK[at % 4] for at, octet in enumerate(payload))
    return bytes([first]) + length + _MASK + masked


def _over(sessions: Sequence[Session], protocol: str, first: int) -> tuple[Session, ...]:
    ping = message(b"ping", 0x89)
    return tuple((handshake(protocol), *(message(frame, first) for frame in session), ping) for session in sessions)


#: The end of a WebSocket, with a reason.
_CLOSE: Final = message((1000).to_bytes(2, "big") + b"bye", 0x88)

#: Sessions that end before their login.
REFUSED: Final[tuple[Session, ...]] = (
    (handshake("mqtt"), message(mqtt_seeds.SESSIONS[0][0]), _CLOSE, _CLOSE),
    (handshake("v11.stomp"), message(stomp_seeds.SESSIONS[0][0], 0x81), message(b"x" * 300, 0x8A), _CLOSE),
)

MQTT_SESSIONS: Final = _over(mqtt_seeds.SESSIONS, "mqtt", 0x82)
STOMP_SESSIONS: Final = (
    *_over(stomp_seeds.SESSIONS, "v12.stomp", 0x81),
    # a message in three fragments, a ping between them
    (
        handshake("v12.stomp"),
        message(b"STOMP\naccept-", 0x01),
        message(b"", 0x89),
        message(b"version:1.2\nhost:fuzz\nlogin:fuzz\n", 0x00),
        message(b"passcode:fuzz-pass\n\n\0", 0x80),
    ),
)
