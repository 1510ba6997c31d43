"""MQTT: an outline of what one side sends."""

from collections.abc import Callable, Generator
from typing import Any, Final

from gateway.recording.parsing import Fields, Grammar, ParsingStep, Read, Unreadable

_NAMES: Final = [
    "RESERVED",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
]

#: The place of the reason code in packets that have one.
_CODE_AT: Final = {"CONNACK": 1, "PUBACK": 2, "PUBREC": 2, "PUBREL": 2, "PUBCOMP": 2, "DISCONNECT": 0, "AUTH": 0}


def outline_grammar(emit: Callable[[str], None]) -> Grammar:
    """Return the grammar of one side's bytes."""
    while True:
        first = (yield Read(1))[0]
        name = _NAMES[first >> 4]
        fields = Fields((yield from _size()))
        if name == "PUBLISH":
            topic = yield from fields.read((yield from fields.number(2)))
            text = f"PUBLISH {topic.decode(errors='replace')} QoS {first >> 1 & 3}"
        elif (at := _CODE_AT.get(name)) is not None and fields.left > at:
            yield from fields.skip(at)
            code = yield from fields.number(1)
            text = name if code == 0 else f"{name} {code:#04x}"
        else:
            text = name
        yield from fields.skip_rest()
        if name != "PINGRESP":
            emit(text)


def _size() -> Generator[ParsingStep, Any, int]:
    size = 0
    for place in range(4):
        octet: int = (yield Read(1))[0]
        size |= (octet & 0x7F) << 7 * place
        if not octet & 0x80:
            return size
    raise Unreadable
