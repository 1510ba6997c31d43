"""The result of a command line."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a command line."""

    code: int
    out: str
    err: str


Ctl = Callable[..., Result]
