"""Named profiles: the brokers of a user, in a TOML file that only the user may read."""

import difflib
import os
import shlex
import stat
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.ctl.errors import WrongData, WrongUsage

FILE_VARIABLE: Final = "GATEWAYCTL_CONFIG"

#: The longest time for the command of a password or a token, in seconds.
_COMMAND_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Profile:
    """One broker. Empty strings are not set. A command prints the password or the token; it runs without a shell."""

    url: str = ""
    user: str = ""
    password: str = ""
    password_command: str = ""
    token_command: str = ""
    ca: str = ""
    vhost: str = ""

    def secret(self) -> str:
        """Return the password, or the output of its command. :raises WrongData: if the command fails."""
        return _output_of(self.password_command) if self.password_command else self.password

    def token(self) -> str:
        """Return the token, or an empty string without a command. :raises WrongData: if the command fails."""
        return _output_of(self.token_command) if self.token_command else ""


KEYS: Final = tuple(field.name for field in fields(Profile))


def profile_file() -> Path:
    """Return the path of the file: that of the environment, or ``gateway/gatewayctl.toml`` in the user's directory."""
    return Path(os.environ.get(FILE_VARIABLE) or Path(click.get_app_dir("gateway")) / "gatewayctl.toml")


def find_profile(name: str | None) -> Profile:
    """Return a profile, by default the file's ``default_profile``, or an empty one.

    :raises WrongUsage: if there is no such profile.
    :raises WrongData: if the file is wrong, or others may read or write it.
    """
    document = _document()
    tables = document.get("profiles", {})
    chosen = name or document.get("default_profile", "")
    if not chosen:
        return Profile()
    if chosen in tables:
        return _checked(chosen, tables[chosen])
    near = difflib.get_close_matches(chosen, tables, 1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(sorted(tables)) or 'none'}"
    raise WrongUsage(f"no profile '{chosen}' in {profile_file()}{hint}")


def profiles_by_name() -> tuple[str, Mapping[str, Profile]]:
    """Return the name of the default profile, or an empty string, and all profiles. :raises WrongData: as above."""
    document = _document()
    profiles = {name: _checked(name, table) for name, table in document.get("profiles", {}).items()}
    return document.get("default_profile", ""), profiles


def text_of(file: Path) -> str:
    """Read the file; a missing one is empty. :raises WrongData: if others may read or write it, or it is no text."""
    try:
        with file.open("rb") as opened:
            _require_private(file, os.fstat(opened.fileno()))
            return opened.read().decode()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise WrongData(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise WrongData(f"{file} is not TOML: {error}") from None


def _document() -> Mapping[str, Any]:
    return document_in(profile_file(), text_of(profile_file()))


def document_in(file: Path, text: str) -> Mapping[str, Any]:
    """Return what the text of the file says. :raises WrongData: if it is wrong."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongData(f"{file} is not TOML: {error}") from None
    unknown = sorted(document.keys() - {"profiles", "default_profile"})
    if unknown:
        raise WrongData(f"{file}: no such key '{unknown[0]}'; allowed are default_profile and [profiles.NAME]")
    if not isinstance(document.get("profiles", {}), dict):
        raise WrongData(f"{file}: profiles must be tables: [profiles.NAME]")
    if not isinstance(document.get("default_profile", ""), str):
        raise WrongData(f"{file}: default_profile must be a string")
    return document


def _require_private(file: Path, status: os.stat_result) -> None:
    """Require that only the user may read and write the file, which has passwords and commands."""
    if status.st_uid not in (os.getuid(), 0):
        raise WrongData(f"{file} belongs to another user: it is not used")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise WrongData(f"{file} may be used by others, and has passwords: chmod 600 {file}")


def _checked(name: str, table: object) -> Profile:
    if not isinstance(table, dict):
        raise WrongData(f"{profile_file()}: profiles.{name} must be a table")
    for key, value in table.items():
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"allowed are {', '.join(KEYS)}"
            raise WrongData(f"{profile_file()}: no such key profiles.{name}.{key}; {hint}")
        if not isinstance(value, str):
            raise WrongData(f"{profile_file()}: profiles.{name}.{key} must be a string")
    return Profile(**table)


def _output_of(command: str) -> str:
    """Run a command and return the first line of its output. :raises WrongData: if it fails or prints nothing."""
    try:
        words = shlex.split(command)
        done = subprocess.run(words, stdout=subprocess.PIPE, timeout=_COMMAND_TIMEOUT_S, check=False, text=True)
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        raise WrongData(f"the command '{command}' of the profile fails: {error}") from None
    line = done.stdout.partition("\n")[0].strip()
    if done.returncode or not line:
        raise WrongData(
            f"the command '{command}' of the profile ended with code {done.returncode} and printed no secret"
        )
    return line
