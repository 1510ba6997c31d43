"""Encoding of values as compact JSON, with a tag for each type that JSON lacks.

A tagged value is an object with the single key ``$``: ``{"$": ["bytes", "aGk="]}``. A mapping that has such a key
itself is tagged too, so every ``Value`` is decoded equal and with the same type. A time zone is decoded as its offset.
"""

import json
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from math import isfinite
from typing import Final, TypeAlias, cast

from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Value

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

TAG: Final = "$"
"""The key of a tagged value."""

_MICROSECOND: Final = timedelta(microseconds=1)
_PLAIN: Final = frozenset({type(None), bool, str})

#: Larger integers become hexadecimal: Python refuses to parse very long decimal ones.
_LARGEST_PLAIN_INTEGER: Final = 2**64

#: Text may contain lone surrogates; each is encoded as three bytes.
_TEXT: Final = ("utf-8", "surrogatepass")


#: The encoders of records and of keys: ``json.dumps`` makes one for each call with options.
_RECORDS: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_KEYS: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)

#: How both encode a text.
_quoted: Final[Callable[[str], str]] = json.encoder.encode_basestring


def dumps(fields: dict[str, Value]) -> bytes:
    """Encode the fields of a record. :raises TypeError: if some value is not a ``Value``."""
    return _RECORDS.encode(_to_json(fields)).encode(*_TEXT)


def loads(data: bytes) -> dict[str, Value]:
    """Decode the output of ``dumps``. :raises ValueError: for any other data."""
    try:
        fields = _from_json(json.loads(data.decode(*_TEXT)))
    except (TypeError, ArithmeticError) as flaw:
        raise ValueError(f"the content of a tagged value is wrong: {flaw!r}") from None
    except RecursionError:
        raise ValueError("the fields of a record are nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("the fields of a record are a mapping")
    return fields


def text_as_json(text: str) -> str:
    """Return a text as ``dumps`` writes it, for records that are written often."""
    return _quoted(text)


def bytes_as_json(octets: bytes) -> str:
    """Return bytes as ``dumps`` writes them, for records that are written often."""
    return f'{{"{TAG}":["bytes","{b2a_base64(octets, newline=False).decode()}"]}}'


def as_record(text: str) -> bytes:
    """Return the JSON of the fields of a record as ``dumps`` does."""
    return text.encode(*_TEXT)


def dumps_key(key: Sequence[Value]) -> bytes:
    """Encode a key so that equal keys give equal bytes, whatever the order of their mappings."""
    texts = [value for value in key if type(value) is str]
    if len(texts) == len(key):  # most keys: the JSON encoder takes longer to begin than for the texts
        return f"[{','.join(map(_quoted, texts))}]".encode(*_TEXT)
    plain = [_to_json(value) for value in key]
    return _KEYS.encode(plain).encode(*_TEXT)


def _to_json(value: Value) -> Json:
    if type(value) in _PLAIN:
        return cast(Json, value)
    for kind in type(value).__mro__:  # a codec may subclass a type to mark its values
        if (encode := _ENCODERS.get(kind)) is not None:
            return encode(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


def _from_json(value: Json) -> Value:
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {name: _from_json(item) for name, item in value.items()}
    match value:
        case {"$": [str(tag), content]} if tag in _DECODERS and len(value) == 1:
            return _DECODERS[tag](content)
    raise ValueError("unknown tag in a stored value")


def _tagged(tag: str, content: Json) -> Json:
    return {TAG: [tag, content]}


def _dict_to_json(value: dict[str, Value]) -> Json:
    if not all(type(name) is str for name in value):
        raise TypeError("the names in a mapping must be strings")
    plain: Json = {name: _to_json(item) for name, item in value.items()}
    return _tagged("dict", plain) if TAG in value else plain


def _dict_from_json(content: dict[str, Json]) -> Value:
    return {name: _from_json(item) for name, item in content.items()}


def _int_to_json(value: int) -> Json:
    return value if abs(value) < _LARGEST_PLAIN_INTEGER else _tagged("int", hex(value))


def _float_to_json(value: float) -> Json:
    return value if isfinite(value) else _tagged("float", repr(value))


def _datetime_to_json(value: datetime) -> Json:
    offset = value.utcoffset()
    microseconds = None if offset is None else offset // _MICROSECOND
    return _tagged("datetime", [value.replace(tzinfo=None).isoformat(), microseconds])


def _datetime_from_json(content: tuple[str, int | None]) -> Value:
    # The offset is separate because fromisoformat drops an offset below one second.
    text, microseconds = content
    value = datetime.fromisoformat(text)
    return value if microseconds is None else value.replace(tzinfo=timezone(microseconds * _MICROSECOND))


# ---- One row for each type of Value ---------------------------------------------------------------------------------

_ENCODERS: Final[dict[type, Callable[..., Json]]] = {
    int: _int_to_json,
    float: _float_to_json,
    bytes: lambda value: _tagged("bytes", b2a_base64(value, newline=False).decode()),
    Decimal: lambda value: _tagged("decimal", str(value)),
    datetime: _datetime_to_json,
    Long: lambda value: _tagged("long", str(value)),
    list: lambda value: [_to_json(item) for item in value],
    dict: _dict_to_json,
}

_DECODERS: Final[dict[str, Callable[..., Value]]] = {
    "int": lambda content: int(content, 16),
    "long": lambda content: Long(content),
    "float": float,
    "bytes": b64decode,
    "decimal": Decimal,
    "datetime": _datetime_from_json,
    "dict": _dict_from_json,
}
