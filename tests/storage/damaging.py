"""A process that opens damaged copies of a store, so that a crash does not end the tests."""

import os
import random
import shutil
import sys
from pathlib import Path

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Enqueued
from gateway_lmdb import LmdbStore


def try_open(path: Path) -> str:
    """Open a store and read everything in it; return the outcome."""
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


def truncate(whole: bytes, path: Path) -> None:
    """Truncate the file at every page, and within some."""
    pages = len(whole) // 4096
    for size in [*range(1, 4096, 500), *range(4096, len(whole), 4096 * max(1, pages // 60)), len(whole) - 1]:
        (path / "data.mdb").write_bytes(whole[:size])
        report(f"cut {size}", try_open(path))


def overwrite(whole: bytes, path: Path) -> None:
    """Write random bytes to the pages that a start reads, at the front and all over the file."""
    rng = random.Random(7)
    for trial in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 5])):
            at = rng.randrange(0, min(len(data), 16_384) if trial % 2 else len(data)) // 4096 * 4096
            data[at : at + 4096] = rng.randbytes(4096)
        (path / "data.mdb").write_bytes(data)
        report(f"scribbled {trial}", try_open(path))
    (path / "data.mdb").write_bytes(rng.randbytes(len(whole)))
    report("all random", try_open(path))


def report(what: str, outcome: str) -> None:
    sys.stdout.write(f"{what}\t{outcome}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    source, work = Path(sys.argv[1]), Path(sys.argv[2])
    os.makedirs(work)
    whole = (source / "data.mdb").read_bytes()
    {"truncate": truncate, "overwrite": overwrite}[sys.argv[3]](whole, work)
    shutil.rmtree(work)
