"""Samples of a process's stack, counted by function and by part of the gateway."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final

#: The part of samples without a function of the gateway.
_ELSEWHERE: Final = "elsewhere"

#: The package whose folders are parts of their own.
_BROKER: Final = "gateway"


@dataclass
class Samples:
    """Numbers of samples: by the function that ran, and by the part of the gateway that called it."""

    total: int = 0
    by_function: Counter[str] = field(default_factory=Counter)
    by_part: Counter[str] = field(default_factory=Counter)


def read_samples(lines: Iterable[str]) -> Samples:
    """Count collapsed stacks: in each line frames from the outermost, joined by semicolons, and the number of samples.

    A frame is ``function (path/of/module.py:line)``.
    """
    samples = Samples()
    for line in lines:
        stack, _, number = line.strip().rpartition(" ")
        if not number.isdigit():
            continue
        frames, count = stack.split(";"), int(number)
        samples.total += count
        samples.by_function[frames[-1]] += count
        samples.by_part[_part(frames)] += count
    return samples


def _part(frames: list[str]) -> str:
    """Return the package of the innermost function of the gateway, which called what ran."""
    for frame in reversed(frames):
        folders = PurePath(frame.rpartition(" (")[2]).parts[:-1]
        if folders and folders[0] == _BROKER:
            return "/".join(folders[:2])
        if folders and folders[0].startswith(f"{_BROKER}_"):
            return folders[0]
    return _ELSEWHERE
