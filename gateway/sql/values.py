"""Values of results as JSON: what JSON lacks is text."""

import math
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any


def json_value(value: Any) -> Any:
    """Return a value of DuckDB as JSON. Bytes that are not UTF-8 are hexadecimal, after ``\\x``."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return _text(bytes(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(json_value(key)): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return str(value)


def unique_names(names: Iterable[str]) -> list[str]:
    """Return the names of columns, each once: ``a``, ``a:1``."""
    found: list[str] = []
    for name in names:
        unique, number = name, 0
        while unique in found:
            number += 1
            unique = f"{name}:{number}"
        found.append(unique)
    return found


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"\\x{value.hex()}"
