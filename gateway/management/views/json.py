"""JSON encoding of arguments and headers, some of whose types JSON lacks."""

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite


def encode(fields: object) -> bytes:
    """Encode as JSON. Dates become seconds since the epoch, decimals numbers, bytes text or base64."""
    return _encode(fields, _plain)


def encode_known(fields: object) -> bytes:
    """Encode as ``encode`` does. :raises TypeError: for a value of another type than those."""
    return _encode(fields, _known)


def _encode(fields: object, convert: Callable[[object], object]) -> bytes:
    try:
        return json.dumps(fields, default=convert, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:  # a number that JSON lacks, such as NaN
        return json.dumps(plain(fields), separators=(",", ":")).encode()


def _known(value: object) -> object:
    if isinstance(value, bytes | datetime | Decimal):
        return _plain(value)
    raise TypeError(f"{type(value).__name__} is not a type of JSON")


def plain(value: object) -> object:
    """Convert a value to types that JSON has."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return b64encode(value).decode()
    if isinstance(value, datetime):
        return int(value.timestamp() if value.tzinfo is not None else value.replace(tzinfo=UTC).timestamp())
    if isinstance(value, Decimal):
        return float(value)
    return str(value)
