"""Keys of the metadata as subjects: parts of any text become tokens."""

import re
from typing import Final

from gateway.cluster.metadata import Key
from gateway_jetstream.errors import NatsProtocolError

#: What stands for itself; any other byte is ``=`` and two hexadecimal digits, an empty part is ``=``.
_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_TOKEN: Final = re.compile(r"=|(?:[a-zA-Z0-9_-]|=[0-9A-F]{2})+")


def encode_key(key: Key) -> str:
    """Return the text of a key."""
    return ".".join(_encoded(part) for part in key)


def decode_key(text: str) -> Key:
    """Return the key in a text. :raises NatsProtocolError: if it is none."""
    return tuple(_decoded(token) for token in text.split("."))


def _encoded(part: str) -> str:
    if not part:
        return "="
    return "".join(chr(byte) if byte in _PLAIN else f"={byte:02X}" for byte in part.encode())


def _decoded(token: str) -> str:
    if _TOKEN.fullmatch(token) is None:
        raise NatsProtocolError(f"{token[:60]!r} is no part of a key")
    if token == "=":
        return ""
    raw = re.sub(rb"=(..)", lambda found: bytes.fromhex(found[1].decode()), token.encode())
    try:
        part = raw.decode()
    except UnicodeDecodeError:
        raise NatsProtocolError(f"{token[:60]!r} is not UTF-8") from None
    if _encoded(part) != token:
        raise NatsProtocolError(f"{token[:60]!r} is not written as keys are")
    return part
