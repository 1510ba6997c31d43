"""Changes of the file of profiles that keep everything else in it, comments too."""

import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import tomli_w

from gateway.cli.ctl.connecting.profiles import Profile, document_in, profile_file, text_of
from gateway.cli.ctl.errors import WrongData, WrongUsage

_TABLE: Final = re.compile(r"\s*\[")
_DEFAULT: Final = re.compile(r"\s*default_profile\s*=")

Change = Callable[[str, dict[str, Any]], str]
"""Returns the new text of a file, and changes its document, which is what the new text must say."""


def add_profile(name: str, profile: Profile) -> None:
    """Add a profile. :raises WrongUsage: if there is one of this name."""

    values = {key: value for key, value in asdict(profile).items() if value}

    def change(text: str, document: dict[str, Any]) -> str:
        profiles = document.setdefault("profiles", {})
        if name in profiles:
            raise WrongUsage(f"profile '{name}' exists in {profile_file()}; remove it first")
        profiles[name] = values
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return text + gap + tomli_w.dumps({"profiles": {name: values}})

    _change(change)


def remove_profile(name: str) -> None:
    """Remove a profile; if it is the default, there is none then. :raises WrongUsage: if there is no such profile."""

    def change(text: str, document: dict[str, Any]) -> str:
        _require(name, document)
        del document["profiles"][name]
        if document.get("default_profile") == name:
            del document["default_profile"]
            text = _with_default(text, None)
        return _without_table(text, name)

    _change(change)


def use_profile(name: str) -> None:
    """Make a profile the default. :raises WrongUsage: if there is no such profile."""

    def change(text: str, document: dict[str, Any]) -> str:
        _require(name, document)
        document["default_profile"] = name
        return _with_default(text, name)

    _change(change)


def _require(name: str, document: Mapping[str, Any]) -> None:
    if name not in document.get("profiles", {}):
        raise WrongUsage(f"no profile '{name}' in {profile_file()}")


def _change(change: Change) -> None:
    """Change the file. :raises WrongData: if it is written in a way that cannot be changed here."""
    file = profile_file()
    text = text_of(file)
    document = dict(document_in(file, text))
    changed = change(text, document)
    document = {key: value for key, value in document.items() if value != {}}
    try:
        is_as_wanted = {key: value for key, value in tomllib.loads(changed).items() if value != {}} == document
    except ValueError:
        is_as_wanted = False
    if not is_as_wanted:
        raise WrongData(f"{file} has its profiles in another form than [profiles.NAME]: change it with an editor")
    _write(file, changed)


def _without_table(text: str, name: str) -> str:
    """Return the text without a table; comments before the next table stay."""
    lines = text.splitlines(keepends=True)
    key = "|".join(re.escape(each) for each in (name, f'"{name}"', f"'{name}'"))
    head = re.compile(rf"\s*\[\s*profiles\s*\.\s*({key})\s*\]")
    begins = next((number for number, line in enumerate(lines) if head.match(line)), None)
    if begins is None:
        return text
    later = (number for number, line in enumerate(lines) if number > begins and _TABLE.match(line))
    ends = next(later, len(lines))
    while ends < len(lines) and ends > begins + 1 and lines[ends - 1].lstrip()[:1] in ("", "#"):
        ends -= 1
    return "".join([*lines[:begins], *lines[ends:]])


def _with_default(text: str, name: str | None) -> str:
    """Return the text with this default profile, or without one."""
    lines = text.splitlines(keepends=True)
    first_table = next((number for number, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    place = next((number for number, line in enumerate(lines[:first_table]) if _DEFAULT.match(line)), None)
    new = [] if name is None else [tomli_w.dumps({"default_profile": name})]
    if place is not None:
        return "".join([*lines[:place], *new, *lines[place + 1 :]]).lstrip("\n")
    return "".join([*new, "\n" if new and lines else "", *lines])


def _write(file: Path, text: str) -> None:
    """Replace the file at once by one that only the user may read; a link to it stays."""
    real = file.resolve()
    try:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{real.name}-", dir=real.parent)  # of mode 0600
        try:
            with open(descriptor, "w", encoding="utf-8") as opened:
                opened.write(text)
                opened.flush()
                os.fsync(opened.fileno())
            Path(temporary).replace(real)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WrongData(f"cannot write {file}: {error.strerror}") from None
