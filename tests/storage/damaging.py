"""A process of its own that opens damaged copies of a store: what ends it by a signal must not end the tests."""

import os
import random
import shutil
import sys
from pathlib import Path

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Enqueued
from gateway_lmdb import LmdbStore


def look(path: Path) -> str:
    """Open a store and read everything in it; return what became of it."""
    try:
        store = LmdbStore(path, call_in_kernel=lambda call: None)
    except StorageError as error:
        return f"refused: {error}"
    try:
        for change in store.recover():
            if isinstance(change, Enqueued):
                store.messages([change.message_id])
        return "read"
    except StorageError as error:
        return f"refused: {error}"
    finally:
        store.close()


def cut(whole: bytes, path: Path) -> None:
    """Cut the file off at every page, and within some."""
    pages = len(whole) // 4096
    for size in [*range(1, 4096, 500), *range(4096, len(whole), 4096 * max(1, pages // 60)), len(whole) - 1]:
        (path / "data.mdb").write_bytes(whole[:size])
        report(f"cut {size}", look(path))


def scribble(whole: bytes, path: Path) -> None:
    """Write random bytes into the pages that a start reads: at the front, and over all of it."""
    chance = random.Random(7)
    for trial in range(60):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 5])):
            at = chance.randrange(0, min(len(data), 16_384) if trial % 2 else len(data)) // 4096 * 4096
            data[at : at + 4096] = chance.randbytes(4096)
        (path / "data.mdb").write_bytes(data)
        report(f"scribbled {trial}", look(path))
    (path / "data.mdb").write_bytes(chance.randbytes(len(whole)))
    report("all random", look(path))


def report(what: str, outcome: str) -> None:
    sys.stdout.write(f"{what}\t{outcome}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    source, work = Path(sys.argv[1]), Path(sys.argv[2])
    os.makedirs(work)
    whole = (source / "data.mdb").read_bytes()
    {"cut": cut, "scribble": scribble}[sys.argv[3]](whole, work)
    shutil.rmtree(work)
