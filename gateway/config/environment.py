"""Settings from environment variables: ``GATEWAY__AMQP__PORT=5673`` is ``amqp.port = 5673``.

The name is ``GATEWAY__`` and the key, with two underscores for the dot. With ``_FILE`` at its end the value is the
content of a file, as containers get their secrets: ``GATEWAY__DEFAULT_PASS_FILE=/run/secrets/pass``. Unlike a command
line, other users of the machine cannot read either.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gateway.kernel.errors import ConfigurationError

PREFIX: Final = "GATEWAY__"
FROM_FILE: Final = "_FILE"


def settings_in(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variable and ``SECTION.KEY=VALUE`` of each setting, in the order of the names.

    :raises ConfigurationError: if the file that a variable names cannot be read.
    """
    for name, value in sorted(environment.items()):
        if not name.startswith(PREFIX):
            continue
        key = name.removeprefix(PREFIX)
        # No setting ends with _file: a test of the catalogue ensures it.
        if key.endswith(FROM_FILE):
            key, value = key.removesuffix(FROM_FILE), _content(name, Path(value))
        yield name, f"{key.lower().replace('__', '.')}={value}"


def _content(name: str, file: Path) -> str:
    """Return the content of a file without its last line end, quoted, as a password may look like a number."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{name}: {file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name}: {file}: not UTF-8") from None
    return json.dumps(text.rstrip("\r\n"), ensure_ascii=False)
