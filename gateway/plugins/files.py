"""The plugin directory: which of its files are plugins, and that nobody but its owner could have put them there.

A file in it is executed with the rights of the broker, so whoever can write it can do whatever the broker can.
"""

import os
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final

from gateway.kernel.errors import ConfigurationError

#: Files that pytest knows: they lie beside a plugin and are none.
_TESTS: Final = ("test_*.py", "*_test.py", "conftest.py")

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def plugin_files(directory: Path) -> Iterator[Path]:
    """Yield the plugins of a directory by name.

    :raises ConfigurationError: when it is no directory, or others than its owner may write to it or to a plugin.
    """
    if not directory.is_dir():
        raise ConfigurationError(f"plugins_dir {directory} is not a directory")
    _require_safe(directory)
    cache = directory / "__pycache__"
    if cache.exists():
        _require_safe(cache)
    for path in sorted(directory.glob("*.py")):
        if not any(fnmatchcase(path.name, pattern) for pattern in _TESTS):
            _require_safe(path)
            yield path


def load_file(path: Path) -> object:
    """Import a single file under a name that no package has."""
    spec = spec_from_file_location(f"gateway_plugin_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError("no loader for this file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def mentions(path: Path, names: frozenset[str]) -> bool:
    """Return whether a file may define one of these names: it could not be loaded, so its text has to tell."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return "import *" in text or any(name in text for name in names)


def _require_safe(path: Path) -> None:
    """Insist that a file or directory is the broker's or root's, and that no other user may write to it."""
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigurationError(f"plugins_dir: {path} cannot be looked at: {error.strerror}") from None
    if found.st_uid in (0, os.geteuid()) and not found.st_mode & _WRITABLE_BY_OTHERS:
        return
    raise ConfigurationError(
        f"plugins_dir: {path} must belong to root or to the user of the broker and be writable by no other user, "
        f"because it is executed; its owner is {found.st_uid}, its mode {stat.S_IMODE(found.st_mode):04o}"
    )
