"""Codec of method frames that are not on the hot path: payload bytes to objects and back.

pamqp's command classes define the methods, their arguments and types (0-9-1 XML with RabbitMQ's extensions). Reading
and writing are implemented here, by steps prepared once per method at import, because pamqp accepts truncated arguments
and refuses names that RabbitMQ accepts.

A ``longstr`` argument is text in which ``surrogateescape`` keeps bytes that are not UTF-8: SASL responses are not
always text, and :func:`bytes_of` returns their bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from struct import Struct
from typing import ClassVar, Final, NoReturn, TypeAlias, cast

from pamqp.base import Frame
from pamqp.commands import INDEX_MAPPING

from gateway.kernel.errors import ProtocolViolation
from gateway.kernel.messages.message import Arguments
from gateway_amqp.tables import (
    CutShort,
    MalformedField,
    contents_at,
    decode_table,
    encode_short_text,
    encode_table,
    sized,
)

Reader: TypeAlias = Callable[[Frame, bytes, int], int]
"""(method, payload, position) -> position of the next argument; sets the argument on the method."""

Writer: TypeAlias = Callable[[Frame], bytes]

_INDEX: Final = Struct(">HH")
_FRAME: Final = Struct(">BHI")
_METHOD_FRAME: Final = 1
_FRAME_END: Final = b"\xce"
_SHOWN_BYTES: Final = 128
"""The number of bytes that fit a reply text of 255 bytes in Erlang's notation, ``0,`` each; RabbitMQ cuts there."""


class MalformedMethod(ProtocolViolation):
    """A method whose arguments cannot be decoded."""

    def __init__(self, class_id: int, method_id: int, reason: str) -> None:
        super().__init__(reason)
        self.class_id = class_id
        self.method_id = method_id


class UnknownMethod(ProtocolViolation):
    """A method that AMQP 0-9-1 and RabbitMQ's extensions do not define."""

    def __init__(self, class_id: int, method_id: int) -> None:
        super().__init__("unimplemented method")
        self.class_id = class_id
        self.method_id = method_id


class AccessRequest(Frame):
    """``access.request`` of AMQP 0-8, which old clients still send and pamqp no longer defines."""

    __slots__: ClassVar[list[str]] = ["realm", "exclusive", "passive", "active", "write", "read"]  # noqa: RUF023 - wire order
    frame_id: ClassVar[int] = 10
    index: ClassVar[int] = 0x001E000A
    name: ClassVar[str] = "Access.Request"
    synchronous: ClassVar[bool] = True
    valid_responses: ClassVar[list[str]] = ["Access.RequestOk"]

    _realm = "shortstr"
    _exclusive = _passive = _active = _write = _read = "bit"


class AccessRequestOk(Frame):
    """The answer to :class:`AccessRequest`; RabbitMQ's ticket is always 1."""

    __slots__: ClassVar[list[str]] = ["ticket"]
    frame_id: ClassVar[int] = 11
    index: ClassVar[int] = 0x001E000B
    name: ClassVar[str] = "Access.RequestOk"

    _ticket = "short"

    def __init__(self, ticket: int = 1) -> None:
        self.ticket = ticket


def decode_method(payload: bytes) -> Frame:
    """Decode the payload of a method frame.

    :raises MalformedMethod: in RabbitMQ's words where it has some.

    :raises UnknownMethod: when there is no such method.
    """
    if len(payload) < 4:
        raise MalformedMethod(0, 0, f"cannot decode {_as_erlang(payload)}")
    layout = _LAYOUTS.get(payload[:4])
    if layout is None:
        raise UnknownMethod(*_INDEX.unpack_from(payload))
    method, position = layout.method.__new__(layout.method), 4
    try:
        for read in layout.readers:
            position = read(method, payload, position)
    except (MalformedField, IndexError, UnicodeDecodeError) as error:
        _refuse(payload, error)
    if position != len(payload):
        _refuse(payload, CutShort(f"{len(payload) - position} bytes follow the arguments"))
    return method


def encode_method(channel: int, method: Frame) -> bytes:
    """Encode the whole frame of a method.

    :raises ValueError: when an argument does not fit its type, such as a text of more than 255 bytes.
    """
    layout = _LAYOUTS[method.index.to_bytes(4)]
    payload = b"".join([write(method) for write in layout.writers])
    return b"".join(
        (_FRAME.pack(_METHOD_FRAME, channel, 4 + len(payload)), method.index.to_bytes(4), payload, _FRAME_END)
    )


def index_of(payload: bytes) -> tuple[int, int]:
    """Return class and method of a method frame."""
    return int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")


def table_of(arguments: object) -> Arguments:
    """Return a table argument as decoded here; pamqp's type annotation is that of its own codec."""
    return cast(Arguments, arguments)


def bytes_of(text: str | None) -> bytes:
    """Return the bytes that a ``longstr`` argument was sent as; none for an argument that was not set."""
    return (text or "").encode("utf-8", "surrogateescape")


def _refuse(payload: bytes, error: Exception) -> NoReturn:
    if isinstance(error, UnicodeDecodeError):
        reason = "Malformed UTF-8 in shortstr"
    elif isinstance(error, CutShort | IndexError):
        reason = f"cannot decode {_as_erlang(payload[4:])}"
    else:
        reason = str(error)
    class_id, method_id = _INDEX.unpack_from(payload)
    raise MalformedMethod(class_id, method_id, reason) from error


def _as_erlang(content: bytes) -> str:
    return f"<<{','.join(map(str, content[:_SHOWN_BYTES]))}>>"


# ---------------------------------------------------------------- layouts


@dataclass(frozen=True, slots=True)
class _Layout:
    """The readers and writers of one method's arguments."""

    method: type[Frame]
    readers: tuple[Reader, ...]
    writers: tuple[Writer, ...]


def _layout(method: type[Frame]) -> _Layout:
    steps = list(_steps(method))
    return _Layout(method, tuple(read for read, _ in steps), tuple(write for _, write in steps))


def _steps(method: type[Frame]) -> Iterator[tuple[Reader, Writer]]:
    """Return a reader and a writer for each argument; adjacent bits share an octet (4.2.5.2), never more than eight."""
    for kind, names in groupby(method.attributes(), method.amqp_type):
        if kind == "bit":
            yield _bits(tuple(names))
        else:
            yield from (_ARGUMENTS[kind](name) for name in names)


def _bits(names: tuple[str, ...]) -> tuple[Reader, Writer]:
    flags = tuple((name, 1 << place) for place, name in enumerate(names))

    def read(method: Frame, payload: bytes, position: int) -> int:
        octet = payload[position]
        for name, flag in flags:
            setattr(method, name, bool(octet & flag))
        return position + 1

    def write(method: Frame) -> bytes:
        return bytes((sum(flag for name, flag in flags if getattr(method, name)),))

    return read, write


def _number(size: int) -> Callable[[str], tuple[Reader, Writer]]:
    def steps(name: str) -> tuple[Reader, Writer]:
        def read(method: Frame, payload: bytes, position: int) -> int:
            stop = position + size
            if stop > len(payload):
                raise CutShort(f"{name} is cut short")
            setattr(method, name, int.from_bytes(payload[position:stop]))
            return stop

        def write(method: Frame) -> bytes:
            number: int = getattr(method, name)
            if number >> 8 * size:
                raise ValueError(f"{name} {number} does not fit into {size} bytes")
            return number.to_bytes(size)

        return read, write

    return steps


def _short_text(name: str) -> tuple[Reader, Writer]:
    def read(method: Frame, payload: bytes, position: int) -> int:
        stop = position + 1 + payload[position]
        if stop > len(payload):
            raise CutShort(f"{name} is cut short")
        setattr(method, name, payload[position + 1 : stop].decode())
        return stop

    return read, lambda method: encode_short_text(getattr(method, name))


def _long_text(name: str) -> tuple[Reader, Writer]:
    def read(method: Frame, payload: bytes, position: int) -> int:
        start, stop = contents_at(payload, position, len(payload))
        setattr(method, name, payload[start:stop].decode("utf-8", "surrogateescape"))
        return stop

    return read, lambda method: sized(bytes_of(getattr(method, name)))


def _table(name: str) -> tuple[Reader, Writer]:
    def read(method: Frame, payload: bytes, position: int) -> int:
        fields, stop = decode_table(payload, position)
        setattr(method, name, fields)
        return stop

    return read, lambda method: encode_table(getattr(method, name))


_ARGUMENTS: Final[dict[str, Callable[[str], tuple[Reader, Writer]]]] = {
    "octet": _number(1),
    "short": _number(2),
    "long": _number(4),
    "longlong": _number(8),
    "shortstr": _short_text,
    "longstr": _long_text,
    "table": _table,
}

_METHODS: Final[tuple[type[Frame], ...]] = (*INDEX_MAPPING.values(), AccessRequest, AccessRequestOk)

_LAYOUTS: Final = {method.index.to_bytes(4): _layout(method) for method in _METHODS}
