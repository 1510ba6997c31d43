"""JSON encoding of arguments and headers, some of whose types JSON lacks."""

import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

from gateway.kernel.messages.json_values import plain, plain_scalar


def encode(fields: object) -> bytes:
    """Encode as JSON. Dates become seconds since the epoch, decimals numbers, bytes text or base64."""
    return _encode(fields, plain_scalar)


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
        return plain_scalar(value)
    raise TypeError(f"{type(value).__name__} is not a type of JSON")
