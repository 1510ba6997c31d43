"""A process of its own that copies the data of a store compactly: ``python -m gateway_lmdb.copying SOURCE TARGET``.

The pages it reads count as its memory and not as the broker's, and it can be ended at any moment.
"""

import os
import sys
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Final

import lmdb

from gateway_lmdb.environment import DEFAULT_MAP_SIZE, FILE

_LOOK_S: Final = 0.5


def copy(source: Path, target: Path) -> None:
    """Write a compact copy of what is durable in ``source`` into the empty directory ``target``, synced."""
    with lmdb.open(str(source), map_size=DEFAULT_MAP_SIZE, readonly=True, readahead=False) as environment:
        environment.copy(str(target), compact=True)
    with (target / FILE).open("rb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fsync(file.fileno())


def _end_with(parent: int) -> None:
    """End when the broker has ended."""
    while os.getppid() == parent:
        sleep(_LOOK_S)
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        copy(Path(sys.argv[1]), Path(sys.argv[2]))
    except (OSError, lmdb.Error) as fault:
        sys.exit(str(fault))
