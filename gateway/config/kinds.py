"""The kinds of values a setting takes: how each is written, what it becomes, and what is allowed, in words.

A kind is an annotation. The words travel with it in an ``Allowed``, so that errors, ``etc/gateway.toml`` and the
documentation say the same thing of the same setting.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

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
    """What a setting takes, in words."""

    words: str


def parse_size(value: object) -> int:
    """Read ``1048576``, ``"50MB"`` or ``"2GiB"`` as bytes. :raises ValueError: for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in UNITS:
        raise ValueError("not a size")
    return int(match[1]) * UNITS[match[2]]


def write_size(size: int) -> int | str:
    """Write bytes the short way: ``52428800`` becomes ``"50MiB"``."""
    for unit in _WRITTEN_AS:
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return size


def parse_watermark(value: object) -> float | int:
    """Read a share of the memory as ``float``, an amount of it as ``int`` bytes."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    return parse_size(value)


def write_watermark(watermark: float | int) -> float | int | str:
    """Write a watermark as it would be given in a file."""
    return watermark if isinstance(watermark, float) else write_size(watermark)


def parse_listener_port(value: object) -> int | None:
    """Read a port; ``"off"`` is ``None``."""
    if value == "off":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65535:
        return value
    raise ValueError("not a port")


def write_listener_port(port: int | None) -> int | str:
    """Write a port as it would be given in a file."""
    return "off" if port is None else port


def parse_address(value: object) -> str:
    """Read an IP address or ``*``. Names are refused: which of their addresses is meant is not for us to guess."""
    if not isinstance(value, str):
        raise ValueError("not an address")
    return value if value == "*" else str(ip_address(value))


def parse_path(value: object) -> Path | None:
    """Read a path; the empty string is ``None``."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str):
        raise ValueError("not a path")
    return Path(value) if value else None


def write_path(path: Path | None) -> str:
    """Write a path as it would be given in a file."""
    return "" if path is None else str(path)


def parse_directory(value: object) -> Path:
    """Read the path of a directory, which may not be empty."""
    path = parse_path(value)
    if path is None:
        raise ValueError("empty")
    return path


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
"""A TCP port, 0 for any free one, or ``None`` for no listener."""

UrlPath = Annotated[str, Field(pattern=r"^/[^?#\s]*$"), Allowed('a path such as "/ws"')]
"""The path of a URL."""

Token = Annotated[
    str,
    Field(pattern=r"^[!-'*-.0-~]{1,100}$"),
    Allowed("1 to 100 visible ASCII characters without space, parentheses and slash"),
]
"""A word that protocols can carry in a header."""

Origins = Annotated[
    list[Annotated[str, Field(pattern=r"^(\*|null|https?://[^/\s]+)$")]],
    Allowed('a list of origins such as "https://console.example.com", or ["*"] for any'),
]
"""The origins of pages."""

Hosts = Annotated[
    list[Annotated[str, Field(pattern=r"^(\*|[^/:\s]+)$")]],
    Allowed('a list of names without ports, or ["*"] for any'),
]
"""Names of hosts."""

BindAddress = Annotated[str, BeforeValidator(parse_address), Allowed('an IPv4 or IPv6 address, or "*"')]
"""An address to listen on, or ``*`` for every interface."""

OptionalPath = Annotated[
    Path | None,
    BeforeValidator(parse_path),
    PlainSerializer(write_path),
    Allowed('a path, or "" for none'),
]
"""A path, relative ones from the directory the gateway was started in, or ``None``."""

DirectoryPath = Annotated[
    Path,
    BeforeValidator(parse_directory),
    PlainSerializer(write_path),
    Allowed("a path"),
]
"""The path of a directory, relative ones from the directory the gateway was started in."""

Password = Annotated[SecretStr, Field(strict=False), Allowed("a string")]
"""What is not shown where settings are."""
