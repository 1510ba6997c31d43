"""Bodies in Avro's binary encoding of a schema, without a header before the value."""

import json
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from fastavro import parse_schema

from gateway.body_formats import AvroBody
from gateway.columnar.bodies.avro_logical import as_json_text, logical
from gateway.columnar.bodies.body_schema import BodyRefused, list_of
from gateway.kernel.errors import ConfigurationError

Read: TypeAlias = Callable[[AvroBody], Any]
"""Reads one value."""


class Reader(NamedTuple):
    """The type of a part of a schema, and the reader of its values."""

    kind: pa.DataType
    read: Read


class AvroBodies:
    """The bodies of one Avro schema (``.avsc``)."""

    def __init__(self, text: bytes) -> None:
        """:raises ConfigurationError: if the schema is not valid."""
        named: dict[str, Any] = {}
        try:
            schema = parse_schema(json.loads(text), named_schemas=named)
        except KeyError as error:
            raise ConfigurationError(f"not an Avro schema: the key {error} is missing") from None
        except Exception as error:  # the library raises what its code runs into, such as TypeError
            unknown = "unknown type " if type(error).__name__ == "UnknownType" else ""
            raise ConfigurationError(f"not an Avro schema: {unknown}{error}") from None
        self._root = _Readers(named).of(schema)

    @property
    def kind(self) -> pa.DataType:
        """The type of bodies."""
        return self._root.kind

    def decode(self, body: bytes) -> Any:
        """Return the value of a body. :raises BodyRefused: if it is not the encoding of a value."""
        reading = AvroBody(body, BodyRefused)
        value = self._root.read(reading)
        reading.finish()
        return value


class _Readers:
    """Makes the readers of a schema. ``named`` has the named types that it refers to."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._reader_by_name: dict[str, Reader | None] = {}  # None while a type is not complete

    def of(self, schema: Any) -> Reader:  # Any: JSON
        """Return the reader of a schema, or of the name of a type."""
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return _SIMPLE[schema] if schema in _SIMPLE else self._by_name(schema)
        kind = schema["type"]
        match kind:
            case "record" | "error":
                return self._record(schema)
            case "array":
                item = self.of(schema["items"])
                return Reader(list_of(item.kind), _blocks(item.read))
            case "map":
                item = self.of(schema["values"])
                return Reader(pa.map_(pa.string(), item.kind), _blocks(_entry(item.read)))
            case "enum":
                return self._remembered(schema, Reader(pa.string(), _enum(tuple(schema["symbols"]))))
            case "fixed":
                size = int(schema["size"])
                return self._remembered(schema, self._logical(schema, Reader(pa.binary(), _fixed(size))))
            case str() if kind in _SIMPLE:
                return self._logical(schema, _SIMPLE[kind])
            case _:
                return self.of(kind)

    def _logical(self, schema: Mapping[str, Any], plain: Reader) -> Reader:
        """Return the reader of a logical type; one that is unknown is its plain type, as Avro demands."""
        found = logical(schema)
        if found is None:
            return plain
        kind, convert = found
        read = plain.read
        return Reader(kind, lambda body: convert(read(body)))

    def _by_name(self, name: str) -> Reader:
        """Return the reader of a named type; one that contains itself is JSON text there."""
        if name not in self._reader_by_name:
            return self.of(self._named[name])
        known = self._reader_by_name[name]
        return known if known is not None else Reader(pa.string(), lambda body: self._text(name, body))

    def _text(self, name: str, body: AvroBody) -> str:
        reader = self._reader_by_name[name]
        assert reader is not None
        return as_json_text(reader.kind, reader.read(body))

    def _remembered(self, schema: Mapping[str, Any], reader: Reader) -> Reader:
        self._reader_by_name[schema["name"]] = reader
        return reader

    def _record(self, schema: Mapping[str, Any]) -> Reader:
        self._reader_by_name[schema["name"]] = None
        fields = [(field["name"], self.of(field["type"])) for field in schema["fields"]]
        kind = pa.struct([(name, reader.kind) for name, reader in fields])
        return self._remembered(schema, Reader(kind, _record([(name, reader.read) for name, reader in fields])))

    def _union(self, branches: list[Any]) -> Reader:
        """Return the reader of an optional type, or of several types as JSON text."""
        readers = [self.of(branch) for branch in branches]
        given = [reader for branch, reader in zip(branches, readers, strict=True) if branch != "null"]
        if len(given) == 1:
            return Reader(given[0].kind, _branches([reader.read for reader in readers]))
        return Reader(pa.string(), _branches([_as_text(reader) for reader in readers]))


def _as_text(reader: Reader) -> Read:
    def read(body: AvroBody) -> str | None:
        value = reader.read(body)
        return None if value is None else as_json_text(reader.kind, value)

    return read


def _boolean(body: AvroBody) -> bool:
    if (byte := body.take(1)[0]) > 1:
        raise BodyRefused(f"the byte {byte} is no boolean")
    return byte == 1


def _string(body: AvroBody) -> str:
    try:
        return body.take(body.number()).decode()
    except UnicodeDecodeError:
        raise BodyRefused("a string that is not UTF-8") from None


def _nothing(body: AvroBody) -> None:
    return None


def _floating(kind: pa.DataType, layout: Struct) -> Reader:
    return Reader(kind, lambda body: layout.unpack(body.take(layout.size))[0])


#: The readers of primitive types. A null has the type of text, because tables have no column of nothing.
_SIMPLE: Final[Mapping[str, Reader]] = {
    "null": Reader(pa.string(), _nothing),
    "boolean": Reader(pa.bool_(), _boolean),
    "int": Reader(pa.int32(), lambda body: body.number(32)),
    "long": Reader(pa.int64(), lambda body: body.number()),
    "float": _floating(pa.float32(), Struct("<f")),
    "double": _floating(pa.float64(), Struct("<d")),
    "bytes": Reader(pa.binary(), lambda body: body.take(body.number())),
    "string": Reader(pa.string(), _string),
}


def _fixed(size: int) -> Read:
    return lambda body: body.take(size)


def _enum(symbols: tuple[str, ...]) -> Read:
    def read(body: AvroBody) -> str:
        index = body.number(32)
        if not 0 <= index < len(symbols):
            raise BodyRefused(f"symbol {index} of an enum with {len(symbols)} symbols")
        return symbols[index]

    return read


def _branches(branches: list[Read]) -> Read:
    def read(body: AvroBody) -> Any:
        index = body.number()
        if not 0 <= index < len(branches):
            raise BodyRefused(f"branch {index} of a union with {len(branches)} branches")
        body.enter()
        value = branches[index](body)
        body.leave()
        return value

    return read


def _record(fields: list[tuple[str, Read]]) -> Read:
    def read(body: AvroBody) -> dict[str, Any]:
        body.enter()
        value = {}
        for name, read_field in fields:
            try:
                value[name] = read_field(body)
            except BodyRefused as refusal:
                raise BodyRefused(f"{name}: {refusal}"[:300]) from None
        body.leave()
        return value

    return read


def _entry(read_value: Read) -> Read:
    return lambda body: (_string(body), read_value(body))


def _blocks(read_item: Read) -> Read:
    def read(body: AvroBody) -> list[Any]:
        body.enter()
        values: list[Any] = []
        while count := body.items():
            values.extend(read_item(body) for _ in range(count))
        body.leave()
        return values

    return read
