"""Values as JSON has them: dates are seconds since the epoch, decimals numbers, bytes text or base64."""

from base64 import b64encode
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite


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
    return plain_scalar(value)


def plain_scalar(value: object) -> object:
    """Convert a value of a type that JSON lacks."""
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
