"""Settings from environment variables: ``GATEWAY__AMQP__PORT=5673`` is ``amqp.port = 5673``.

The name is ``GATEWAY__`` and the key, with two underscores for the dot. With ``_FILE`` at its end the value is the
content of a file, as containers get their secrets: ``GATEWAY__DEFAULT_PASS_FILE=/run/secrets/pass``. A text is exactly
that content. Unlike a command line, other users of the machine cannot read either.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gateway.kernel.errors import ConfigurationError

PREFIX: Final = "GATEWAY__"
FROM_FILE: Final = "_FILE"

_VHOSTS: Final = "VHOSTS__"


class Variable(NamedTuple):
    """A variable that is a setting. ``is_content``: the value is the content of a file, which is never shown."""

    name: str
    key: str
    value: str
    is_content: bool


def variables_in(environment: Mapping[str, str]) -> Iterator[Variable]:
    """Yield the variables that are settings, in the order of their names.

    :raises ConfigurationError: if the file that a variable names cannot be read, a setting is given twice, or belongs
        to a virtual host.
    """
    given: dict[str, str] = {}
    for name, value in sorted(environment.items()):
        if not name.startswith(PREFIX):
            continue
        key = name.removeprefix(PREFIX)
        if key.startswith(_VHOSTS):
            raise ConfigurationError(
                f"{name}: settings of virtual hosts have no variables, because case matters in names"
            )
        is_content = key.endswith(FROM_FILE) and not key.endswith(f"_{FROM_FILE}")  # not that of ``log.file``
        if is_content:
            key, value = key.removesuffix(FROM_FILE), _content(name, Path(value))
        if key in given:
            raise ConfigurationError(f"{name}: {given[key]} gives the same setting")
        given[key] = name
        yield Variable(name, key.lower().replace("__", "."), value, is_content)


def _content(name: str, file: Path) -> str:
    """Return the content of a file without its last line end."""
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(f"{name}: {file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name}: {file}: not UTF-8") from None
