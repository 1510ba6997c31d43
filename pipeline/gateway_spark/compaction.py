"""Crash-safe merging of the files of one day of an archive, while it is read and written.

A merged file is written to a directory whose name begins with an underscore, synced, and renamed; then one line of
the manifest adds it and replaces its sources; then the sources are deleted. Before that line readers use the
sources, after it the merged file. Leftovers of a crash are never read, and the next run deletes them.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from gateway_spark.errors import PipelineError
from gateway_spark.iceberg import ADOPTED, is_table
from gateway_spark.manifest import MANIFEST, ArchiveFile, append, files_in, is_whole, lines_of, sync, write_manifest

ASIDE: Final = "_compact"
EXPIRED: Final = "_expired"
LOCK: Final = "_compact.lock"

#: Suffix of merged files, which identifies those without a line in the manifest.
MERGED: Final = "-merged.parquet"

#: The order of rows in a file: by time, then in the order in which the broker received them.
ORDER: Final = ("timestamp", "monotonic_ns", "queue", "partition", "offset")


@dataclass(frozen=True, slots=True)
class Tidied:
    """The result of a day: files afterwards, number of files merged into how many, leftovers deleted."""

    files: int
    merged: int = 0
    made: int = 0
    dropped: int = 0

    @classmethod
    def nothing(cls, files: int) -> "Tidied":
        """Return the result of a day without work."""
        return cls(files)


class Tidying:
    """Merges files smaller than ``small_bytes`` into files of about ``target_bytes``."""

    def __init__(self, spark: SparkSession, small_bytes: int, target_bytes: int, grace_s: float) -> None:
        self._spark = spark
        self._small = small_bytes
        self._target = target_bytes
        self._grace_s = grace_s

    def tidy(self, directory: Path) -> Tidied:
        """Merge small files and delete leftovers."""
        dropped = self._drop(directory)
        if not (directory / MANIFEST).exists():
            write_manifest(directory, files_in(directory))
        merged = made = 0
        for group in self._groups(files_in(directory)):
            self._merge(directory, group)
            merged, made = merged + len(group), made + 1
        return Tidied(len(files_in(directory)), merged, made, dropped)

    def _groups(self, files: Iterable[ArchiveFile]) -> Iterator[list[ArchiveFile]]:
        """Yield the groups of files to merge: from one archive each, in order, up to the target size; at least two."""
        small = (file for file in files if file.size_bytes < self._small)
        for _, of_one in groupby(sorted(small, key=_place), key=archive_of):
            group: list[ArchiveFile] = []
            for file in of_one:
                if group and sum(each.size_bytes for each in group) + file.size_bytes > self._target:
                    yield from [group] if len(group) > 1 else []
                    group = []
                group.append(file)
            yield from [group] if len(group) > 1 else []

    def _merge(self, directory: Path, group: list[ArchiveFile]) -> None:
        aside = directory / f"{ASIDE}-{os.getpid()}"
        whole = self._spark.read.parquet(*(str(file.path) for file in group))
        order = [name for name in ORDER if name in whole.columns]
        whole.coalesce(1).sortWithinPartitions(*order).write.option("compression", "zstd").parquet(str(aside))
        (made,) = aside.glob("part-*.parquet")
        line = self._line(group, made)
        target = directory / line["file"]
        sync(made)
        made.rename(target)
        sync(directory)
        append(directory, line)
        for file in group:
            file.path.unlink(missing_ok=True)
        shutil.rmtree(aside)

    def _line(self, group: list[ArchiveFile], made: Path) -> Mapping[str, Any]:
        """Return the manifest line of a merged file. :raises PipelineError: if its row count differs from its
        sources'.
        """
        rows, expected = self._count([made]), self._count([file.path for file in group])
        if rows != expected:
            raise PipelineError(f"{made} has {rows} rows instead of {expected}; nothing was changed")
        first, last = group[0], group[-1]
        times = {"first_ms": min, "last_ms": max}
        known = {name: pick(file.line[name] for file in group) for name, pick in times.items() if _all_say(group, name)}
        return {
            **{name: first.line[name] for name in ("kind", "name", "queue", "first") if name in first.line},
            **{name: last.line[name] for name in ("next", "sealed_ms") if name in last.line},
            **known,
            "file": f"{stem_of(first)}-{ends_of(first)[0]}-{ends_of(last)[1]}{MERGED}",
            "rows": rows,
            "bytes": made.stat().st_size,
            "replaces": [file.path.name for file in group],
        }

    def _count(self, paths: list[Path]) -> int:
        return self._spark.read.parquet(*map(str, paths)).count()

    def _drop(self, directory: Path) -> int:
        """Delete files that are not read: replaced ones, torn ones, and leftovers of a crash."""
        replaced = {name for line in lines_of(directory) for name in line.get("replaces", ())}
        listed = {line["file"] for line in lines_of(directory)} - replaced
        dropped = 0
        for path in sorted(directory.iterdir()):
            is_ours = path.name.endswith(MERGED) and path.name not in listed
            is_torn = path.suffix == ".parquet" and not is_whole(path)
            if path.is_dir() and path.name.startswith(ASIDE):
                shutil.rmtree(path)
            elif path.name in replaced or ((is_ours or is_torn) and self._is_stale(path)):
                path.unlink()
                dropped += 1
        return dropped

    def _is_stale(self, path: Path) -> bool:
        return time.time() - path.stat().st_mtime >= self._grace_s


def expire(directory: Path) -> None:
    """Delete a day: it disappears atomically for readers, then from the disk."""
    away = directory.with_name(f"{EXPIRED}-{directory.name}")
    directory.rename(away)
    sync(away.parent)
    shutil.rmtree(away)


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Lock the archive against other compactions; complete interrupted deletions of days.

    :raises PipelineError: if another compaction runs, the archive does not exist, or an Iceberg table has its files.
    """
    if not root.is_dir():
        raise PipelineError(f"{root} is not an archive: the directory does not exist")
    if is_table(root):
        raise PipelineError(f"{root} is an Iceberg table: use gateway archive compact")
    with (root / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"{root} is locked by another compaction") from None
        if (root / ADOPTED).exists():
            raise PipelineError(f"{root} belongs to an Iceberg table: use gateway archive compact")
        for left in root.glob(f"vhost=*/{EXPIRED}-*"):
            shutil.rmtree(left)
        yield


def archive_of(file: ArchiveFile) -> tuple[str, ...]:
    """Return the identity of a file's archive: from the manifest, otherwise from its name."""
    identity = tuple(str(file.line[name]) for name in ("kind", "name") if name in file.line)
    return identity or (stem_of(file),)


def stem_of(file: ArchiveFile) -> str:
    """Return the name of a file without its offsets, the common prefix of its archive."""
    return _plain(file).rsplit("-", 2)[0]


def ends_of(file: ArchiveFile) -> tuple[str, str]:
    """Return the offsets in the name of a file: the first, and the one after the last."""
    words = _plain(file).rsplit("-", 2)
    return (words[1], words[2]) if len(words) == 3 else ("0", "0")


def _plain(file: ArchiveFile) -> str:
    return file.path.name.removesuffix(MERGED).removesuffix(".parquet")


def _place(file: ArchiveFile) -> tuple[tuple[str, ...], str, str]:
    return archive_of(file), ends_of(file)[0], file.path.name


def _all_say(group: list[ArchiveFile], name: str) -> bool:
    return all(name in file.line for file in group)
