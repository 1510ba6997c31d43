"""The runs of pipeline jobs, from the directories to which the jobs write: ``run.json`` and ``report.html``.

The broker starts no job; ``pipeline/gateway_spark/jobs/outputs.py`` writes the files. A directory has the results of
one run, the latest: ``JOB/``, or ``JOB/NAME/`` for a job whose runs have names.
"""

import json
import os
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

RUN_FILE: Final = "run.json"
REPORT_FILE: Final = "report.html"

#: Levels of directories below that of all results.
_DEPTH: Final = 2

#: Directories that a listing examines, and the runs that it returns.
_MOST_DIRECTORIES: Final = 5_000
MOST_RUNS: Final = 1_000

#: Largest ``run.json``, in bytes.
_MOST_NOTED: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class JobResult:
    """The latest run of a job in one directory, which is ``name`` below that of all results.

    ``noted`` is the content of its ``run.json``, ``error`` the reason why that cannot be read. ``report_bytes`` is the
    size of its report, ``None`` without one.
    """

    name: str
    report_bytes: int | None
    noted: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


class JobResults:
    """Reads the runs below ``directory``; ``None`` has none."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def listed(self) -> Generator[None, None, list[JobResult]]:
        """Return the runs by name, in steps of one directory."""
        runs: list[JobResult] = []
        for examined, path in enumerate(self._directories()):
            if len(runs) == MOST_RUNS or examined == _MOST_DIRECTORIES:
                break
            if (run := self._read(path)) is not None:
                runs.append(run)
            yield
        return sorted(runs, key=lambda run: run.name)

    def find(self, name: str) -> JobResult | None:
        """Return a run; ``None`` if no run has this name."""
        path = self._path_of(name)
        return None if path is None else self._read(path)

    def report(self, name: str) -> Path | None:
        """Return the path of a run's report; ``None`` without one."""
        run = self.find(name)
        path = self._path_of(name)
        return None if path is None or run is None or run.report_bytes is None else path / REPORT_FILE

    def _directories(self) -> Iterator[Path]:
        """Yield the directories below that of all results; links are not followed."""
        level = [] if self._directory is None else [self._directory]
        for _ in range(_DEPTH):
            below: list[Path] = []
            for path in level:
                for directory in _directories_in(path):
                    below.append(directory)
                    yield directory
            level = below

    def _path_of(self, name: str) -> Path | None:
        """Return the directory of a run, if the name is that of a directory which a listing examines."""
        parts = name.split("/")
        if self._directory is None or len(parts) > _DEPTH or any(part in ("", ".", "..") for part in parts):
            return None
        path = self._directory
        for part in parts:
            path = path / part
            if "\0" in part or path.is_symlink():
                return None
        return path

    def _read(self, path: Path) -> JobResult | None:
        """Return the run of a directory; ``None`` if no job has ended there."""
        assert self._directory is not None
        size = _size_of(path / RUN_FILE)
        if size is None:
            return None
        name, report_bytes = path.relative_to(self._directory).as_posix(), _size_of(path / REPORT_FILE)
        if size > _MOST_NOTED:
            return JobResult(name, report_bytes, error=f"{RUN_FILE} has more than {_MOST_NOTED} bytes")
        try:
            noted = json.loads((path / RUN_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            noted = None
        if not isinstance(noted, dict):
            return JobResult(name, report_bytes, error=f"{RUN_FILE} is not a JSON object that can be read")
        return JobResult(name, report_bytes, noted)


def _directories_in(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return [path / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # it does not exist, or this user may not read it
        return []


def _size_of(path: Path) -> int | None:
    """Return the size of a file in bytes; ``None`` if it does not exist or is a link."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.stat().st_size
    except OSError:
        return None
