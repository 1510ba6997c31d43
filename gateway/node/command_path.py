"""The way to call a command of this installation from a shell in this directory."""

import shutil
import sysconfig
from pathlib import Path


def command_path(name: str) -> str:
    """Return the name of a command if it is on the path, else its file, relative to this directory if it is below."""
    installed = Path(sysconfig.get_path("scripts")) / name
    found = shutil.which(name)
    if not installed.exists() or (found is not None and Path(found).resolve() == installed.resolve()):
        return name
    here = Path.cwd()
    return str(installed.relative_to(here) if installed.is_relative_to(here) else installed)
