"""The types of setting values: how each is parsed, written and described in errors and documentation.

A type is an annotation. Its description is part of it as an ``Allowed``, so that errors, ``etc/gateway.toml`` and the
documentation describe a setting in the same words.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, SecretStr

UNITS: Final = {
    "": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "kiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_WRITTEN_AS: Final = ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB")
_SIZE: Final = re.compile(r"(\d+) ?([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Description of the values that a setting accepts."""

    words: str


def parse_size(value: object) -> int:
    """Parse ``1048576``, ``"50MB"`` or ``"2GiB"`` as bytes. :raises ValueError: for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in UNITS:
        raise ValueError("not a size")
    return int(match[1]) * UNITS[match[2]]


def write_size(size: int) -> int | str:
    """Write a number of bytes in its shortest form: ``52428800`` becomes ``"50MiB"``."""
    for unit in _WRITTEN_AS:
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return size


def parse_watermark(value: object) -> float | int:
    """Parse a share of the memory as ``float``, an amount of it as ``int`` bytes."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    return parse_size(value)


def write_watermark(watermark: float | int) -> float | int | str:
    """Write a watermark in the form used in a configuration file."""
    if isinstance(watermark, float):
        return watermark
    return write_size(watermark) if watermark > 1 else str(watermark)  # the numbers 0 and 1 are shares


def parse_listener_port(value: object) -> int | None:
    """Parse a port; ``"off"`` is ``None``."""
    if value == "off":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65535:
        return value
    raise ValueError("not a port")


def write_listener_port(port: int | None) -> int | str:
    """Write a port in the form used in a configuration file."""
    return "off" if port is None else port


def parse_address(value: object) -> str:
    """Parse an IP address or ``*``. Host names are refused, because one may have several addresses."""
    if not isinstance(value, str):
        raise ValueError("not an address")
    return value if value == "*" else str(ip_address(value))


def parse_path(value: object) -> Path | None:
    """Parse a path; the empty string is ``None``."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str):
        raise ValueError("not a path")
    return Path(value) if value else None


def write_path(path: Path | None) -> str:
    """Write a path in the form used in a configuration file."""
    return "" if path is None else str(path)


def parse_directory(value: object) -> Path:
    """Parse the path of a directory, which must not be empty."""
    path = parse_path(value)
    if path is None:
        raise ValueError("empty")
    return path


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Mark of a setting that a reload applies."""


T = TypeVar("T")

Live = Annotated[T, Reloaded()]
"""The kind of a setting that a reload applies; ``Node`` passes the new value on."""

Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(write_size),
    Allowed('a number of bytes, or a string such as "50MB" (powers of 1000: kB, MB, GB, TB) or "2GiB" (of 1024)'),
]
"""A number of bytes."""

Watermark = Annotated[
    int | float,
    Field(union_mode="left_to_right"),
    BeforeValidator(parse_watermark),
    PlainSerializer(write_watermark),
    Allowed('a share of the memory from 0.0 to 1.0, or an amount such as "2GiB"'),
]
"""A share of the memory (``float``, 0 to 1) or an amount of it (``int``, bytes)."""

ListenerPort = Annotated[
    int | None,
    BeforeValidator(parse_listener_port),
    PlainSerializer(write_listener_port),
    Allowed('a port from 1 to 65535, 0 for any free port, or "off"'),
]
"""A TCP port, 0 for any free port, or ``None`` for no listener."""

UrlPath = Annotated[str, Field(pattern=r"^/[^?#\s]*$"), Allowed('a path such as "/ws"')]
"""The path of a URL."""

Token = Annotated[
    str,
    Field(pattern=r"^[!-'*-.0-~]{1,100}$"),
    Allowed("1 to 100 visible ASCII characters without space, parentheses and slash"),
]
"""A word that can be sent in a protocol header."""

Origins = Annotated[
    list[Annotated[str, Field(pattern=r"^(\*|null|https?://[^/\s]+)$")]],
    Allowed('a list of origins such as "https://console.example.com", or ["*"] for any'),
]
"""Origins of web pages."""

Hosts = Annotated[
    list[Annotated[str, Field(pattern=r"^(\*|[^/:\s]+)$")]],
    Allowed('a list of names without ports, or ["*"] for any'),
]
"""Host names."""

_PATH: Final = r"\$(\.[^\s.\[\]]+|\[\*\])*"

BodyRules = Annotated[
    list[Annotated[str, Field(pattern=rf"^\S+ \S+ {_PATH}$")]],
    Allowed('a list of rules such as "orders eu.* $.customer.card"'),
]
"""Rules that replace parts of bodies: pattern of names, pattern of routing keys, path into JSON."""

AuditPaths = Annotated[
    list[Annotated[str, Field(pattern=rf"^\S+ {_PATH}$")]],
    Allowed('a list of rules such as "queue.* $.arguments.x-owner"'),
]
"""Rules that replace parts of entries of the audit record: action, path into JSON."""

BindAddress = Annotated[str, BeforeValidator(parse_address), Allowed('an IPv4 or IPv6 address, or "*"')]
"""An address to listen on, or ``*`` for every interface."""

OptionalPath = Annotated[
    Path | None,
    BeforeValidator(parse_path),
    PlainSerializer(write_path),
    Allowed('a path, or "" for none'),
]
"""A path, or ``None``; a relative path starts from the working directory of the gateway."""

Paths = Annotated[list[str], Allowed("a list of paths")]
"""Paths; a relative path starts from the working directory of the gateway."""

DirectoryPath = Annotated[
    Path,
    BeforeValidator(parse_directory),
    PlainSerializer(write_path),
    Allowed("a path"),
]
"""The path of a directory; a relative path starts from the working directory of the gateway."""

Password = Annotated[SecretStr, Field(strict=False), Allowed("a string")]
"""A string that is hidden when the settings are printed."""
