"""Findings of a run: inputs that break a law, one for each place in the code."""

import hashlib
import traceback
from pathlib import Path
from typing import Final

from tests.fuzz.decoders.inventory import ROOT

#: Folders with our code; a finding is named by the innermost frame in one of them.
_OURS: Final = tuple(str(ROOT / folder) for folder in ("gateway", "protocols", "storage", "plugins", "tests/fuzz"))


class Findings:
    """Writes each finding to ``folder`` once: the input, and a text that says what it breaks and how to repeat it."""

    def __init__(self, folder: Path, target: str) -> None:
        self._folder = folder
        self._target = target
        self._known: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        """Return the number of findings."""
        return len(self._known)

    def add(self, data: bytes, error: BaseException) -> None:
        """Add a finding, unless one of this kind and place is known."""
        identity = type(error).__name__, place_of(error)
        if identity in self._known:
            return
        self._known.add(identity)
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{self._target}-{hashlib.blake2b(data, digest_size=6).hexdigest()}"
        file.write_bytes(data)
        again = reproduction(file, self._target)
        shown = "".join(traceback.format_exception(error))
        file.with_suffix(".txt").write_text(f"{again}\n\n{shown}", encoding="utf-8", errors="replace")
        print(f"FOUND {identity[0]} at {identity[1]}: {str(error)[:200]!r}\n      {again}", flush=True)


def reproduction(file: Path, target: str) -> str:
    """Return the command that runs a target on the input in a file."""
    return f'make fuzz-decoders ARGS="--only {target} --replay {file}"'


def place_of(error: BaseException) -> str:
    """Return file and line of the innermost frame in our code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_OURS)] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
