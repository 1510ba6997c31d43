"""Settings that a reload can change, and the differences between two sets of settings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.config.kinds import Reloaded
from gateway.config.section import Section
from gateway.config.settings import Settings


def _live(section: type[Section], prefix: str = "") -> Iterator[str]:
    """Yield the keys of the settings of kind ``Live``."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _live(field.annotation, f"{name}.")
        elif Reloaded() in field.metadata:
            yield prefix + name


#: Settings that a reload applies; settings of connections affect only connections opened afterwards.
LIVE: Final = frozenset(_live(Settings))


def differences(old: Settings, new: Settings) -> list[str]:
    """Return the keys of the settings that differ, in documentation order."""
    before, after = dict(flat(old.model_dump())), dict(flat(new.model_dump()))
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


def with_live_of(old: Settings, new: Settings) -> Settings:
    """Return the settings in effect after a reload: the old ones with the live settings of the new ones."""
    update: dict[str, Any] = {}
    for name in Settings.model_fields:
        keys = [key for key in LIVE if key == name or key.startswith(f"{name}.")]
        if keys == [name]:
            update[name] = getattr(new, name)
        elif keys:
            section = getattr(new, name)
            fields = {key.partition(".")[2]: getattr(section, key.partition(".")[2]) for key in keys}
            update[name] = getattr(old, name).model_copy(update=fields)
    return old.model_copy(update=update)


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting with its dotted key."""
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
