"""AMQP 0-9-1: an outline of what one side sends."""

import re
from collections.abc import Callable
from struct import unpack
from typing import Any, Final

from pamqp import commands

from gateway.recording.parsing import Fields, Grammar, Read, Skip

_METHOD: Final = 1
_HEADER: Final = 2

#: Methods whose first field is a reply code: close of connection and channel, and return.
_WITH_CODE: Final = frozenset({(10, 50), (20, 40), (60, 50)})

#: A confirm may answer several publishes, as the disk decides: it is not compared.
_CONFIRM: Final = (60, 80)


def method_name(method: tuple[int, int]) -> str:
    """Return the name of a method: ``queue.declare-ok``."""
    known: Any = commands.INDEX_MAPPING.get(method[0] << 16 | method[1])
    if known is None:
        return f"method {method[0]}.{method[1]}"
    class_name, _, name = known.name.partition(".")
    return f"{class_name.lower()}.{re.sub('(?<=[a-z])(?=[A-Z])', '-', name).lower()}"


def outline_grammar(emit: Callable[[str], None], arguments: Callable[[str, bytes], str] | None = None) -> Grammar:
    """Return the grammar of one side's bytes. ``emit`` gets a line for each complete frame.

    ``arguments`` returns the text of a method's encoded arguments.
    """
    while True:
        head = yield Read(7)
        if head.startswith(b"AMQP"):
            emit("protocol header")
            yield Read(1)
            continue
        kind, _, size = unpack(">BHI", head)
        fields, text = Fields(size), ""
        if kind == _METHOD:
            method = (yield from fields.number(2)), (yield from fields.number(2))
            name = method_name(method)
            if arguments is not None:
                text = f"{name} {arguments(name, (yield from fields.read(fields.left)))}".rstrip()
            elif method in _WITH_CODE:
                text = f"{name} {yield from fields.number(2)}"
            elif method != _CONFIRM:
                text = name
        elif kind == _HEADER:
            yield from fields.skip(4)
            text = f"content of {yield from fields.number(8)} bytes"
        yield from fields.skip_rest()
        yield Skip(1)
        if text:
            emit(text)
