"""List of all settings (key, default, allowed values, meaning), used for error messages and documentation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from gateway.config.kinds import Allowed, Reloaded, write_size
from gateway.config.section import Section
from gateway.config.settings import Settings


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting. ``default`` has the form it takes in TOML; the value is never shown if ``is_secret``.

    A reload applies it if it ``is_live``.
    """

    key: str
    default: Any
    allowed: str
    meaning: str
    is_string: bool
    is_secret: bool
    is_live: bool


@dataclass(frozen=True, slots=True)
class Table:
    """One table of settings; the top-level table has the key ``""``."""

    key: str
    meaning: str
    settings: tuple[SettingInfo, ...]


def tables() -> Iterator[Table]:
    """Yield the tables in documentation order."""
    defaults = plain(Settings())
    yield Table("", "", tuple(_settings(Settings, "", defaults)))
    for name, field in Settings.model_fields.items():
        if (section := _section(field)) is not None:
            yield Table(name, section.__doc__ or "", tuple(_settings(section, f"{name}.", defaults[name])))


@cache
def settings_by_key() -> Mapping[str, SettingInfo]:
    """Return every setting by its dotted key."""
    return {setting.key: setting for table in tables() for setting in table.settings}


def plain(settings: Settings) -> dict[str, Any]:
    """Return the settings in the form of a TOML document, passwords in clear text."""
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
                Reloaded() in field.metadata,
            )


def _section(field: FieldInfo) -> type[Section] | None:
    """Return the section type of a field, or ``None`` if the field is no section."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _is_string(field: FieldInfo) -> bool:
    """Return whether a bare word or number on the command line means a string."""
    return field.annotation in (str, SecretStr, Path, Path | None) or get_origin(field.annotation) is Literal


def _allowed(field: FieldInfo) -> str:
    """Describe the values that a setting accepts."""
    low, high = _bounds(field)
    for words in (item.words for item in field.metadata if isinstance(item, Allowed)):
        return words if high is None else f"{words}; from {write_size(low or 0)} to {write_size(high)}"
    if get_origin(field.annotation) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(field.annotation))
    if field.annotation is int:
        return f"a whole number from {low} to {high}"
    if field.annotation is float:
        return f"a number from {low} to {high}"
    return {bool: "true or false", str: "a string", list[str]: "a list of strings"}[field.annotation]  # type: ignore[index]  # every kind in use has an entry; a test reads them all


def _bounds(field: FieldInfo) -> tuple[int | None, int | None]:
    """Return the lowest and highest number that a field accepts; ``None`` where it has no bound."""
    low = high = None
    for item in field.metadata:
        if isinstance(item, annotated_types.Ge):
            low = item.ge
        if isinstance(item, annotated_types.Le):
            high = item.le
    return low, high  # type: ignore[return-value]  # the bounds in use are whole numbers
