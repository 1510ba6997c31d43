"""The data types of MQTT packets (1.5): integers, variable byte integers, UTF-8 strings and binary data.

A reader takes the bytes, the start of the value and the end of its packet. It returns the value and the position after
it.
"""

from typing import Final

from gateway_mqtt.codec.errors import malformed

LARGEST_VARINT: Final = 268_435_455
"""The largest value of four bytes of seven bits (Table 1-1)."""

LARGEST_PACKET: Final = 1 + 4 + LARGEST_VARINT
"""The largest packet: the first byte, a remaining length of four bytes, and the largest remaining length."""

LONGEST_STRING: Final = 65_535
"""The largest size of a UTF-8 string or of binary data, in bytes."""

#: The variable byte integers of one byte, the most frequent ones.
_SHORT: Final = [bytes((number,)) for number in range(0x80)]


def read_varint(data: bytes, at: int) -> tuple[int, int] | None:
    """Decode a variable byte integer (1.5.5); return ``None`` if the bytes end before it does.

    An encoding longer than necessary is accepted: 3.1.1 allows it, and the remaining length precedes the version. For
    5.0 callers add :func:`require_minimal`.

    :raises MqttError: if the integer has a fifth byte.
    """
    value = shift = 0
    for octet in data[at : at + 4]:
        value |= (octet & 0x7F) << shift
        shift += 7
        at += 1
        if octet < 0x80:
            return value, at
    if shift == 28:
        raise malformed("a variable byte integer of more than four bytes")
    return None


def require_minimal(value: int, size: int) -> None:
    """Refuse a variable byte integer of ``size`` bytes that fits in fewer (MQTT-1.5.5-1)."""
    if size > 1 and value >> 7 * (size - 1) == 0:
        raise malformed(f"{value} encoded in {size} bytes")


def read_bounded_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decode a variable byte integer inside a 5.0 packet. :raises MqttError: if it is cut short or too long."""
    read = read_varint(data, at)
    if read is None or read[1] > end:
        raise malformed(f"the variable byte integer at byte {at} is cut short")
    require_minimal(read[0], read[1] - at)
    return read


def varint(number: int) -> bytes:
    """Encode a variable byte integer in as few bytes as possible. :raises ValueError: if four are not enough."""
    if number < 0x80:
        return _SHORT[number]
    if number > LARGEST_VARINT:
        raise ValueError(f"{number} is more than a variable byte integer holds")
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    octets.append(number)
    return bytes(octets)


def read_octet(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decode one byte. :raises MqttError: if it is missing."""
    if at >= end:
        raise malformed(f"the byte at {at} is missing")
    return data[at], at + 1


def read_u16(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decode a two byte integer. :raises MqttError: if it is cut short."""
    if at + 2 > end:
        raise malformed(f"the two byte integer at byte {at} is cut short")
    return data[at] << 8 | data[at + 1], at + 2


def read_u32(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decode a four byte integer. :raises MqttError: if it is cut short."""
    if at + 4 > end:
        raise malformed(f"the four byte integer at byte {at} is cut short")
    return int.from_bytes(data[at : at + 4], "big"), at + 4


def read_binary(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    """Decode binary data after its length of two bytes (1.5.6). :raises MqttError: if it is cut short."""
    size, start = read_u16(data, at, end)
    stop = start + size
    if stop > end:
        raise malformed(f"{size} bytes announced at byte {at}, of which {end - start} came")
    return data[start:stop], stop


def read_utf8(data: bytes, at: int, end: int) -> tuple[str, int]:
    """Decode a UTF-8 string (1.5.4). :raises MqttError: if it is cut short or invalid."""
    octets, stop = read_binary(data, at, end)
    return text_of(octets), stop


def text_of(octets: bytes) -> str:
    """Decode the bytes of a UTF-8 string; a byte order mark stays a character (MQTT-1.5.4-3).

    :raises MqttError: for invalid UTF-8, surrogates included (MQTT-1.5.4-1), and for U+0000 (MQTT-1.5.4-2).
    """
    try:
        text = octets.decode()
    except UnicodeDecodeError as flaw:
        raise malformed(f"not UTF-8 at byte {flaw.start} of a string: {flaw.reason}") from None
    if "\0" in text:
        raise malformed("a string holds U+0000")
    return text


def u16(number: int) -> bytes:
    """Encode a two byte integer."""
    return number.to_bytes(2, "big")


def u32(number: int) -> bytes:
    """Encode a four byte integer."""
    return number.to_bytes(4, "big")


def binary(octets: bytes) -> bytes:
    """Encode binary data after its length. :raises ValueError: if it is longer than 65,535 bytes."""
    if len(octets) > LONGEST_STRING:
        raise ValueError(f"{len(octets)} bytes are more than MQTT's binary data and strings hold")
    return len(octets).to_bytes(2, "big") + octets


def utf8(text: str) -> bytes:
    """Encode a UTF-8 string. :raises ValueError: if it is too long or contains a surrogate or U+0000."""
    if "\0" in text:
        raise ValueError("U+0000 in a string")
    return binary(text.encode())
