"""How a command line ended."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    """The exit code and what was printed where."""

    code: int
    out: str
    err: str


Ctl = Callable[..., Ended]
