"""Load settings from a TOML file, the environment and ``--set``; each error is one line that names key and cause."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from gateway.config.catalogue import settings_by_key
from gateway.config.checks import contradictions
from gateway.config.environment import FROM_FILE, Variable, variables_in
from gateway.config.settings import Settings
from gateway.kernel.errors import ConfigurationError

Document: TypeAlias = dict[str, Any]
KeyPath: TypeAlias = tuple[str, ...]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
VHOSTS_ALLOW: Final = (
    'vhosts."NAME".tracing, vhosts."NAME".trace_table, vhosts."NAME".mqtt_mapping ("reversible" or "lossy") and '
    '[vhosts."NAME".plugins.PLUGIN] tables'
)


@dataclass(frozen=True, slots=True)
class Configured:
    """Settings as they were given. ``origin_by_key`` names file, environment or command line; others are defaults.

    A key is dotted, as in ``amqp.port``; the settings of a virtual host have one key, ``vhosts."NAME"``.
    """

    settings: Settings
    origin_by_key: Mapping[str, str]
    file: Path | None = None


COMMAND_LINE: Final = "command line"
ENVIRONMENT: Final = "environment"

#: The option of an override, which begins the lines of its errors.
_SET: Final = "--set"


def load(
    file: Path | None = None, overrides: Iterable[str] = (), environment: Mapping[str, str] = MappingProxyType({})
) -> Settings:
    """Read the file, apply the variables of the environment and ``SECTION.KEY=VALUE`` overrides, and check the result.

    :raises ConfigurationError: with one line for each error.
    """
    return load_with_origins(file, overrides, environment).settings


def load_with_origins(
    file: Path | None = None, overrides: Iterable[str] = (), environment: Mapping[str, str] = MappingProxyType({})
) -> Configured:
    """Load the settings, as ``load`` does, and note where each was given."""
    document = read_document(file) if file is not None else {}
    origins = dict.fromkeys(_keys(document), str(file))
    givers: dict[KeyPath, str] = {}
    variables = ((each.name, *_parsed_variable(each)) for each in variables_in(environment))
    options = ((_SET, *parse_override(override)) for override in overrides)
    for giver, path, value in (*variables, *options):
        _put(document, path, value)
        givers[path] = giver
        origins |= dict.fromkeys(_keys(_nested(path, value)), COMMAND_LINE if giver == _SET else ENVIRONMENT)
    return Configured(_validated(document, file, givers), origins, file)


def changed(settings: Settings, key: str, value: object) -> Settings:
    """Return the settings with one other value, in the form it has in TOML.

    :raises ConfigurationError: with one line for each error.
    """
    path = tuple(key.split("."))
    if key not in settings_by_key():
        close = get_close_matches(key, settings_by_key(), n=1)
        raise ConfigurationError(f"{key}: no such setting" + (f"; did you mean {close[0]}?" if close else ""))
    new = _validated(_nested(path, value), None, {}, is_whole=False)
    return with_value_of(settings, new, key)


def with_value_of(settings: Settings, other: Settings, key: str) -> Settings:
    """Return the settings with the value that one of them has in ``other``. :raises ConfigurationError: as ``load``."""
    section, _, name = key.rpartition(".")
    if not section:
        result = settings.model_copy(update={name: getattr(other, name)})
    else:
        value = getattr(getattr(other, section), name)
        result = settings.model_copy(update={section: getattr(settings, section).model_copy(update={name: value})})
    if lines := contradictions(result):
        raise ConfigurationError("\n".join(lines))
    return result


def _validated(document: Document, file: Path | None, givers: Mapping[KeyPath, str], is_whole: bool = True) -> Settings:
    """Check a document; contradictions only if it ``is_whole``. ``givers`` has the settings outside the file."""
    try:
        settings = Settings.model_validate(document)
    except ValidationError as errors:
        lines = [_line(error["loc"], error["type"], error["input"], file, givers) for error in errors.errors()]
        raise ConfigurationError("\n".join(lines)) from None
    if is_whole and (lines := contradictions(settings)):
        raise ConfigurationError("\n".join(f"{file}: {line}" if file else line for line in lines))
    return settings


def _keys(document: Document, prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of a document; a virtual host is one key."""
    for name, value in document.items():
        if name == "vhosts" and isinstance(value, dict):
            yield from (written_key((name, vhost)) for vhost in value)
        elif isinstance(value, dict) and not prefix:
            yield from _keys(value, f"{name}.")
        else:
            yield f"{prefix}{name}"


def _nested(path: KeyPath, value: Any) -> Document:
    """Return a document with one value."""
    document: Document = {}
    _put(document, path, value)
    return document


def read_document(file: Path) -> Document:
    """Read a TOML file. :raises ConfigurationError: if it cannot be read or is not TOML."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None
    return document_of(text, str(file))


def document_of(text: str, source: str) -> Document:
    """Parse TOML; ``source`` is its origin in errors. :raises ConfigurationError: if it is not TOML."""
    try:
        return _parsed(text)
    except ValueError as error:
        raise ConfigurationError(f"{source}: not TOML: {error}") from None


def _parsed(text: str) -> Document:
    """Parse TOML. :raises ValueError: if it is not TOML, also for what ``tomllib`` refuses with other errors."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # from ``int``
        raise ValueError("a number has too many digits") from None
    except RecursionError:
        raise ValueError("arrays or tables are nested too deeply") from None


def _parsed_variable(variable: Variable) -> tuple[KeyPath, Any]:
    """Return the key and the value of a variable. :raises ConfigurationError: if the key is malformed."""
    path = _key_path(variable.key)
    if not path:  # the value may be a password
        raise ConfigurationError(f"{variable.name}: not of the form GATEWAY__SECTION__KEY, like GATEWAY__AMQP__PORT")
    setting = settings_by_key().get(".".join(path))
    if variable.is_content and (setting is None or setting.is_string):
        return path, variable.value  # exactly the text: a password may have quotes, or look like a number
    return path, _value(path, variable.value.strip())


def parse_override(text: str) -> tuple[KeyPath, Any]:
    """Split ``SECTION.KEY=VALUE``. The value is TOML, or a bare string if it is no TOML or the setting is a string.

    :raises ConfigurationError: if there is no ``=`` or the key is malformed.
    """
    key, equals, value = text.partition("=")
    path = _key_path(key.strip())
    if not equals or not path:
        examples = 'amqp.port=5673 or vhosts."/".tracing=true'
        raise ConfigurationError(f"--set {text}: not of the form SECTION.KEY=VALUE, like {examples}")
    return path, _value(path, value.strip())


def _key_path(key: str) -> KeyPath:
    """Split a dotted key by TOML's rules, which allow quoted parts: ``vhosts."/".plugins``."""
    try:
        table: Any = _parsed(f"{key} = 0")
    except ValueError:
        return ()
    path = []
    while isinstance(table, dict) and len(table) == 1:
        ((name, table),) = table.items()
        path.append(name)
    return tuple(path)


def _value(path: KeyPath, text: str) -> Any:
    """Parse the value of an override."""
    try:
        value = _parsed(f"value = {text}")["value"]
    except ValueError:
        return text
    setting = settings_by_key().get(".".join(path))
    if setting is not None and setting.is_string and not isinstance(value, str):
        return text
    return value


def _put(document: Document, path: KeyPath, value: Any) -> None:
    """Set a nested value in a document, creating the tables above it."""
    *sections, name = path
    for section in sections:
        table = document.setdefault(section, {})
        if not isinstance(table, dict):
            return
        document = table
    document[name] = value


def _line(
    loc: tuple[int | str, ...], kind: str, value: object, file: Path | None, givers: Mapping[KeyPath, str]
) -> str:
    """Describe an error in one line: its source, the key and the allowed values."""
    path = tuple(part for part in loc if isinstance(part, str))
    giver = next((giver for given, giver in givers.items() if given[: len(path)] == path), None)
    if giver is None:
        source = f"{file}: " if file is not None else ""
    else:
        source = f"{giver} " if giver == _SET else f"{giver}: "
    key = written_key(path)
    if kind == "extra_forbidden":
        return f"{source}{key}: no such setting; {_suggestion(path)}"
    setting = settings_by_key().get(key)
    is_hidden = (setting is not None and setting.is_secret) or (giver is not None and giver.endswith(FROM_FILE))
    shown = "" if is_hidden else f" not {_shown(value)},"
    return f"{source}{key}: must be {_allowed_at(path)},{shown}".rstrip(",")


def written_key(path: KeyPath) -> str:
    """Write a key in TOML, quoted where necessary: ``vhosts."/".tracing``."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in path)


def _allowed_at(path: KeyPath) -> str:
    """Describe the allowed values of a setting, or the keys of a table."""
    if path[0] == "vhosts":
        return VHOSTS_ALLOW
    setting = settings_by_key().get(".".join(path))
    return setting.allowed if setting is not None else f"a table of {', '.join(_siblings((*path, '')))}"


def _suggestion(path: KeyPath) -> str:
    """Suggest the closest known key for an unknown key, or list all keys of its table."""
    if path[0] == "vhosts":
        return f"allowed: {VHOSTS_ALLOW}"
    siblings = _siblings(path)
    if close := get_close_matches(path[-1], siblings, n=1):
        return f"did you mean {'.'.join((*path[:-1], close[0]))}?"
    return f"allowed here: {', '.join(siblings)}"


def _siblings(path: KeyPath) -> list[str]:
    """Return the names in the table of a key."""
    model: Any = Settings
    for part in path[:-1]:
        model = model.model_fields[part].annotation
    fields: Mapping[str, object] = model.model_fields
    return list(fields)


def _shown(value: object) -> str:
    """Format a wrong value on one line, shortened."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
