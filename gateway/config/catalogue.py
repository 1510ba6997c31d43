"""All settings as a list: key, default, allowed values and meaning. Errors and documentation are made from it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from gateway.config.kinds import Allowed, write_size
from gateway.config.section import Section
from gateway.config.settings import Settings


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting. ``default`` is written as TOML would hold it; what ``is_secret`` is not shown."""

    key: str
    default: Any
    allowed: str
    meaning: str
    is_string: bool
    is_secret: bool


@dataclass(frozen=True, slots=True)
class Table:
    """One table of settings; the table at the top has the key ``""``."""

    key: str
    meaning: str
    settings: tuple[SettingInfo, ...]


def tables() -> Iterator[Table]:
    """Yield the tables in the order in which they are documented."""
    defaults = plain(Settings())
    yield Table("", "", tuple(_settings(Settings, "", defaults)))
    for name, field in Settings.model_fields.items():
        if (section := _section(field)) is not None:
            yield Table(name, section.__doc__ or "", tuple(_settings(section, f"{name}.", defaults[name])))


def settings_by_key() -> dict[str, SettingInfo]:
    """Return every setting under its dotted key."""
    return {setting.key: setting for table in tables() for setting in table.settings}


def plain(settings: Settings) -> dict[str, Any]:
    """Return the settings as a TOML document would hold them, passwords in clear."""
    document = settings.model_dump()
    for table in (document, *(value for value in document.values() if isinstance(value, dict))):
        secrets = {name: value.get_secret_value() for name, value in table.items() if isinstance(value, SecretStr)}
        table.update(secrets)
    return document


def _settings(section: type[Section], prefix: str, defaults: dict[str, Any]) -> Iterator[SettingInfo]:
    for name, field in section.model_fields.items():
        if _section(field) is None and name != "vhosts":
            yield SettingInfo(
                prefix + name,
                defaults[name],
                _allowed(field),
                field.description or "",
                _is_string(field),
                field.annotation is SecretStr,
            )


def _section(field: FieldInfo) -> type[Section] | None:
    """Return the section a field holds, if it holds one."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _is_string(field: FieldInfo) -> bool:
    """Whether a bare word or number given on the command line is meant as a string."""
    return field.annotation in (str, SecretStr, Path, Path | None) or get_origin(field.annotation) is Literal


def _allowed(field: FieldInfo) -> str:
    """Say what a setting takes."""
    low, high = _bounds(field)
    for words in (item.words for item in field.metadata if isinstance(item, Allowed)):
        return words if high is None else f"{words}; from {write_size(low or 0)} to {write_size(high)}"
    if get_origin(field.annotation) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(field.annotation))
    if field.annotation is int:
        return f"a whole number from {low} to {high}"
    return {bool: "true or false", str: "a string", list[str]: "a list of strings"}[field.annotation]  # type: ignore[index]  # every kind in use has an entry; a test reads them all


def _bounds(field: FieldInfo) -> tuple[int | None, int | None]:
    """Return the lowest and highest number a field takes, where it has bounds."""
    low = high = None
    for item in field.metadata:
        if isinstance(item, annotated_types.Ge):
            low = item.ge
        if isinstance(item, annotated_types.Le):
            high = item.le
    return low, high  # type: ignore[return-value]  # the bounds in use are whole numbers
