"""The configuration that a migration writes: settings, and comments for what it could not carry over."""

import json
import tomllib
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from pydantic import ValidationError

from gateway.config import Settings
from gateway.config.catalogue import settings_by_key

#: Rounds of leaving out invalid settings.
_MOST_ROUNDS: Final = 20

#: Shown in comments in the place of the values of these keys.
SECRET_PARTS: Final = ("pass", "secret", "password", "passcode", "psk")


@dataclass(slots=True)
class Tally:
    """The numbers of one file: lines that became settings, and lines that became comments."""

    carried: int = 0
    left: int = 0


@dataclass(slots=True)
class Target:
    """Collects settings by dotted key, plugins of the default virtual host, and comments."""

    settings: dict[str, object] = field(default_factory=dict)
    plugins: dict[str, dict[str, object]] = field(default_factory=dict)
    vhost: str = "/"
    comments: list[str] = field(default_factory=list)
    origins: dict[str, tuple[str, Tally]] = field(default_factory=dict)

    def carry(self, key: str, value: object, line: str, tally: Tally) -> None:
        """Set a setting. A second value for the same key is left out with a comment."""
        if key in self.settings and self.settings[key] != value:
            self.leave(line, f"{key} is set already", tally)
            return
        self.settings[key] = value
        self.origins[key] = line, tally
        tally.carried += 1

    def leave(self, line: str, reason: str, tally: Tally) -> None:
        """Add a comment for a line that has no setting."""
        self.comments.append(f"{masked_line(line)}: {reason}")
        tally.left += 1

    def plugin(self, name: str, key: str, value: object, tally: Tally) -> None:
        """Set a setting of a plugin in the default virtual host."""
        self.plugins.setdefault(name, {})[key] = value
        tally.carried += 1

    def text(self) -> str:
        """Return the TOML document. Settings that the gateway refuses become comments."""
        for _ in range(_MOST_ROUNDS):
            try:
                Settings.model_validate(tomllib.loads(self._document()))
                break
            except ValidationError as errors:
                if not self._drop_invalid(errors):
                    break
        comments = [f"# not carried over: {_printable(comment)}" for comment in self.comments]
        return "\n".join([*comments, *([""] if comments else []), self._document().rstrip(), ""]).lstrip("\n")

    def _drop_invalid(self, errors: ValidationError) -> bool:
        """Replace the settings with errors by comments; return whether there were any."""
        dropped = False
        for error in errors.errors():
            place = ".".join(map(str, error["loc"]))
            for key in [key for key in self.settings if place == key or place.startswith(f"{key}.")]:
                del self.settings[key]
                line, tally = self.origins[key]
                tally.carried -= 1
                self.leave(line, f"{key} cannot have this value", tally)
                dropped = True
        return dropped

    def _document(self) -> str:
        known = list(settings_by_key())
        keys = sorted(self.settings, key=lambda key: known.index(key) if key in known else len(known))
        lines = [f"{key} = {_toml(self.settings[key])}" for key in keys if "." not in key]
        section = ""
        for key in keys:
            table, dot, name = key.rpartition(".")
            if not dot:
                continue
            if table != section:
                section = table
                lines += ["", f"[{table}]"]
            lines.append(f"{name} = {_toml(self.settings[key])}")
        for plugin, settings in self.plugins.items():
            lines += ["", f"[vhosts.{json.dumps(self.vhost)}.plugins.{plugin}]"]
            lines += [f"{name} = {_toml(value)}" for name, value in settings.items()]
        return "\n".join(lines).lstrip("\n") + "\n"


def masked_line(line: str) -> str:
    """Return a line of a configuration without the value of a secret."""
    name, separator, _ = line.partition("=")
    if not separator:
        name, separator, _ = line.partition(" ")
    if any(part in name.lower() for part in SECRET_PARTS) and not name.strip().endswith("_file"):
        return f"{name}{separator} ***" if separator == "=" else f"{name} ***"
    return line


def _toml(value: Any) -> str:
    """Return a value as TOML; strings and lists of strings of JSON are TOML too."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(name)} = {_toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, float) and not isfinite(value):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _printable(line: str) -> str:
    """Return a line as a comment may have it: TOML forbids control characters."""
    return "".join(each if each.isprintable() else "?" for each in line)
