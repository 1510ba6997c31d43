"""Rotation of the log file by an operator's command: ``gateway.log`` becomes ``gateway.log.1``, and so on."""

from pathlib import Path


def rotate(file: Path, kept: int) -> Path:
    """Rename a log file, after older ones moved up by one; return its new name.

    ``kept`` is the number of older files to keep, at least 1; one that would be more is deleted.

    :raises OSError: if a file cannot be renamed.
    """
    for number in range(kept, 0, -1):
        source = _numbered(file, number - 1) if number > 1 else file
        if source.exists():
            source.replace(_numbered(file, number))
    return _numbered(file, 1)


def _numbered(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")
