"""The plugin directory: discovery of plugin files, and checks of their owner and permissions.

The broker executes these files with its own rights, so only root and the broker's user may write to them.
"""

import os
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final

from gateway.kernel.errors import ConfigurationError

#: Test files of pytest, which are not plugins.
_TESTS: Final = ("test_*.py", "*_test.py", "conftest.py")

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def plugin_files(directory: Path) -> Iterator[Path]:
    """Yield the plugins of a directory, sorted by name.

    :raises ConfigurationError: if it is not a directory, or users other than the owner may write to it or to a plugin.
    """
    if not directory.is_dir():
        raise ConfigurationError(f"plugins_dir {directory} is not a directory")
    _require_safe(directory)
    cache = directory / "__pycache__"
    if cache.exists():
        _require_safe(cache)
    for path in sorted(directory.glob("*.py")):
        if not is_test(path):
            _require_safe(path)
            yield path


def is_test(path: Path) -> bool:
    """Return whether a file has the name of a test file, which is not a plugin."""
    return any(fnmatchcase(path.name, pattern) for pattern in _TESTS)


def write_plugin(path: Path, source: bytes) -> tuple[bool, str]:
    """Write a plugin file as a whole; return whether it existed, and the digest of its source.

    :raises ConfigurationError: if it is not Python, or the directory or the file cannot be written safely.
    """
    try:
        compile(source, path.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"{path.name} is not Python: {error}") from None
    _require_safe(path.parent)
    existed = path.exists()
    draft = path.with_suffix(".draft")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(source)
        draft.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from None
    return existed, sha256(source).hexdigest()


def read_plugin(path: Path) -> bytes:
    """Return the source of a plugin file. :raises ConfigurationError: if other users may write to it."""
    _require_safe(path.parent)
    _require_safe(path)
    return path.read_bytes()


def load_file(path: Path, source: bytes | None = None, number: int = 1) -> object:
    """Execute a single file as a module of a unique name; ``number`` is that of the version.

    Compiled from its source each time: a cached compilation is found by the second of its file's time, so a file
    that was changed twice in a second could be executed in its former version.
    """
    name = f"gateway_plugin_file_{path.stem}" + (f"_{number}" if number > 1 else "")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("no loader for this file")
    code = compile(path.read_bytes() if source is None else source, str(path), "exec")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle need it there
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def mentions(path: Path, names: frozenset[str]) -> bool:
    """Whether a file that failed to load may define one of these names, judged by its text."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return "import *" in text or any(name in text for name in names)


def _require_safe(path: Path) -> None:
    """Require that a file or directory belongs to the broker's user or root and no other user can write to it."""
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigurationError(f"plugins_dir: cannot read the permissions of {path}: {error.strerror}") from None
    if found.st_uid in (0, os.geteuid()) and not found.st_mode & _WRITABLE_BY_OTHERS:
        return
    raise ConfigurationError(
        f"plugins_dir: {path} must belong to root or to the user of the broker and be writable by no other user, "
        f"because it is executed; its owner is {found.st_uid}, its mode {stat.S_IMODE(found.st_mode):04o}"
    )
