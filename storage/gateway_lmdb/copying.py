"""A process that writes a compact copy of a store: ``python -m gateway_lmdb.copying SOURCE TARGET``.

The pages it reads do not count as the broker's memory, and it can be stopped at any time.
"""

import os
import sys
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Final

import lmdb

from gateway_lmdb.environment import DEFAULT_MAP_SIZE, FILE

_POLL_S: Final = 0.5


def copy(source: Path, target: Path) -> None:
    """Write a compact copy of the durable data in ``source`` into the empty directory ``target``, and sync it."""
    with lmdb.open(str(source), map_size=DEFAULT_MAP_SIZE, readonly=True, readahead=False) as environment:
        environment.copy(str(target), compact=True)
    with (target / FILE).open("rb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fsync(file.fileno())


def _end_with(parent: int) -> None:
    """Exit when the broker has exited."""
    while os.getppid() == parent:
        sleep(_POLL_S)
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        copy(Path(sys.argv[1]), Path(sys.argv[2]))
    except (OSError, lmdb.Error) as fault:
        sys.exit(str(fault))
