"""The data directory is for the broker's user alone: messages, password hashes and secrets are in it."""

import os
import stat
from pathlib import Path
from typing import Final

#: What the group and everybody else may do.
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_private(directory: Path) -> int:
    """Make a directory that only this user may enter, and take everybody else's rights from one that is there.

    The tree below is looked at only if the directory was open to others, so a start costs nothing once it is private.

    :return: from how many directories and files rights were taken.
    :raises PermissionError: when the directory is another user's, and open to others.
    :raises OSError: when the directory cannot be made.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    changed = _take_rights(directory)
    entries = directory.rglob("*") if changed else directory.iterdir()
    return changed + sum(map(_take_rights, list(entries)))


def _take_rights(path: Path) -> int:
    """Take the rights of others from a file or directory; return 1 if there were any. Links are left as they are."""
    mode = path.lstat().st_mode
    if not mode & _OTHERS or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return 0
    os.chmod(path, stat.S_IMODE(mode) & ~_OTHERS)
    return 1
