"""Values of configuration files."""

import re
from typing import Final

_SIZE: Final = re.compile(r"([0-9]+)\s*([kmgt]?i?b?)", re.IGNORECASE)
_UNITS: Final = {"": "", "k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB"}


def boolean(value: str) -> bool:
    """Parse a boolean. :raises ValueError: if it is none."""
    lower = value.lower()
    if lower in ("true", "on", "yes", "1"):
        return True
    if lower in ("false", "off", "no", "0"):
        return False
    raise ValueError("it is not a boolean")


def whole(value: str) -> int:
    """Parse a whole number. :raises ValueError: if it is none."""
    if not re.fullmatch(r"-?[0-9]+", value):
        raise ValueError("it is not a whole number")
    return int(value)


def size(value: str) -> object:
    """Parse a size as RabbitMQ writes it: ``50MB`` is 50,000,000 bytes, ``50M`` and ``50MiB`` are powers of 1024."""
    found = _SIZE.fullmatch(value)
    if found is None:
        raise ValueError("it is not a size")
    number, unit = found[1], found[2].lower()
    if unit in ("", "b"):
        return int(number)
    prefix, rest = unit[0], unit[1:]
    return f"{number}{prefix.upper()}B" if rest == "b" else f"{number}{_UNITS[prefix]}"


def seconds_of_ms(value: str) -> int:
    """Parse milliseconds as whole seconds, at least one."""
    return max(1, whole(value) // 1000)


def endpoint(value: str) -> tuple[str, int]:
    """Parse ``5672``, ``127.0.0.1:5672`` or ``[::1]:5672``; the address is empty if there is none."""
    address, _, port = value.rpartition(":")
    return address.strip("[]"), whole(port)
