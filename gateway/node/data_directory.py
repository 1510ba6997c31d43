"""The data directory: its access rights, and the names in it.

Only the broker's user may read its messages, password hashes and secrets.
"""

import os
import stat
from pathlib import Path
from typing import Final

COPY: Final = "cluster-copy"
"""The directory of a cluster node's copy in the data directory."""

#: The permission bits of group and others.
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_private(directory: Path) -> int:
    """Create a directory that only this user may enter; remove the rights of others from an existing one.

    The tree below is scanned only if the directory was open to others, so later starts skip the scan.

    :return: the number of directories and files from which rights were removed.
    :raises PermissionError: if the directory belongs to another user and is open to others.
    :raises OSError: if the directory cannot be created.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    changed = _take_rights(directory)
    entries = directory.rglob("*") if changed else directory.iterdir()
    return changed + sum(map(_take_rights, list(entries)))


def _take_rights(path: Path) -> int:
    """Remove the rights of others from a file or directory; return 1 if there were any. Symbolic links are skipped."""
    mode = path.lstat().st_mode
    if not mode & _OTHERS or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return 0
    os.chmod(path, stat.S_IMODE(mode) & ~_OTHERS)
    return 1
