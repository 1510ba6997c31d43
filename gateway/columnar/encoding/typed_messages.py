"""Typed columns of messages, from bodies that a schema describes, and the rows of bodies that it refuses."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from gateway.columnar.bodies.body_schema import BodyRefused, BodySchema
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.schema import MESSAGES
from gateway.kernel.errors import ConfigurationError

SOURCE: Final = pa.schema([("source", pa.string()), ("source_name", pa.string())])
"""The columns that tables of messages have in addition to those of a file in the Parquet layout."""

DEAD_LETTERS: Final = pa.schema([*MESSAGES, *SOURCE, ("table", pa.string()), ("reason", pa.string())])
"""The columns of messages that a typed table has refused: its name, and why."""

#: The column of bodies that are no records.
_VALUE: Final = "value"

#: Characters of a reason.
_LONGEST_REASON: Final = 500

_ENVELOPE: Final = frozenset(name.lower() for name in (*MESSAGES.names, *SOURCE.names))


def typed_columns(kind: pa.DataType) -> pa.Schema:
    """Return the columns of bodies of a type: those of its fields, or one named ``value``.

    A field with the name of a column that each message has gets the prefix ``body_``. Readers of tables do not
    distinguish small and capital letters.

    :raises ConfigurationError: if two columns would have one name.
    """
    if not pa.types.is_struct(kind):
        kind = pa.struct([(_VALUE, kind)])
    names = [f"body_{field.name}" if field.name.lower() in _ENVELOPE else field.name for field in kind]
    columns = pa.schema([field.with_name(name) for name, field in zip(names, kind, strict=True)])
    _require_distinct(pa.struct(columns), "")
    return columns


def _require_distinct(kind: pa.DataType, place: str) -> None:
    """Check the names in a type. :raises ConfigurationError: if one is empty, or equal to another."""
    if pa.types.is_map(kind):
        _require_distinct(kind.item_type, f"{place}.value")
    elif pa.types.is_list(kind):
        _require_distinct(kind.value_type, f"{place}.element")
    elif pa.types.is_struct(kind):
        known: dict[str, str] = {}
        for field in kind:
            other = known.setdefault(field.name.lower(), field.name)
            if other is not field.name and (other != field.name or kind.get_field_index(field.name) < 0):
                raise ConfigurationError(f"the columns {other} and {field.name} differ in capital letters only")
            if not field.name or "." in field.name:
                raise ConfigurationError(f"{field.name!r} cannot be the name of a column: it is empty or has a dot")
            _require_distinct(field.type, f"{place}.{field.name}")


class TypedMessages:
    """The rows of one typed table. ``columns`` are the typed ones, with the types that the table has."""

    def __init__(self, table: str, schema: BodySchema, columns: pa.Schema) -> None:
        self._table = table
        self._decode = schema.decode
        self._is_record = pa.types.is_struct(schema.kind)
        names = [field.name for field in schema.kind] if self._is_record else [_VALUE]
        self._kind = pa.struct([field.with_name(name) for name, field in zip(names, columns, strict=True)])
        self._schema = pa.schema([*MESSAGES, *columns])

    def accepted(self, pieces: Iterable[Piece], refused: Callable[[Piece], None]) -> Iterator[Piece]:
        """Yield the rows whose bodies match, with typed columns; pass on the others with reasons."""
        for piece in pieces:
            values, good, bad, reasons = self._decoded(piece.batch.column("body").to_pylist())
            if bad:
                refused(self._dead_letters(piece, bad, reasons))
            if good:
                rows = piece.batch if not bad else piece.batch.take(pa.array(good, pa.int32()))
                columns = [*rows.columns, *values.flatten()]
                yield piece._replace(batch=pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def _dead_letters(self, piece: Piece, rows: Sequence[int], reasons: Sequence[str]) -> Piece:
        batch = piece.batch.take(pa.array(rows, pa.int32()))
        batch = batch.append_column("table", pa.repeat(pa.scalar(self._table, pa.string()), len(rows)))
        return piece._replace(batch=batch.append_column("reason", pa.array(reasons, pa.string())))

    def _decoded(self, bodies: list[bytes]) -> tuple[pa.StructArray, list[int], list[int], list[str]]:
        """Return the values of bodies, the places of those that match, and of the others with reasons."""
        values: list[Any] = []
        good: list[int] = []
        bad: list[int] = []
        reasons: list[str] = []
        for place, body in enumerate(bodies):
            try:
                values.append(self._value(body))
                good.append(place)
            except BodyRefused as refusal:
                bad.append(place)
                reasons.append(_shown(str(refusal)))
        try:
            return pa.array(values, self._kind), good, bad, reasons
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return self._converted_one_by_one(values, good, dict(zip(bad, reasons, strict=True)))

    def _converted_one_by_one(
        self, values: list[Any], places: list[int], refused: dict[int, str]
    ) -> tuple[pa.StructArray, list[int], list[int], list[str]]:
        """Convert each value alone: one of them does not fit its column, such as a number of 65 bits."""
        arrays: list[pa.Array] = [pa.array([], self._kind)]
        good: list[int] = []
        for place, value in zip(places, values, strict=True):
            try:
                arrays.append(pa.array([value], self._kind))
                good.append(place)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                refused[place] = _shown(f"does not fit its column: {error}")
        bad = sorted(refused)
        return pa.concat_arrays(arrays), good, bad, [refused[place] for place in bad]

    def _value(self, body: bytes) -> Any:
        value = self._decode(body)
        return value if self._is_record else {_VALUE: value}


def _shown(reason: str) -> str:
    """Return a reason as text of a limited length that UTF-8 can encode."""
    return reason[:_LONGEST_REASON].encode("utf-8", "backslashreplace").decode()
