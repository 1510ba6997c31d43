"""A target: a function that gives any bytes to some decoders and checks their laws."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Run: TypeAlias = Callable[[bytes], None]
"""Returns if the bytes obey the laws; any exception is a finding."""

LONGEST_INPUT: Final = 16 * 1024
"""The default of the longest input, in bytes."""


@dataclass(frozen=True, slots=True)
class Target:
    """The decoders in ``covers`` (``module:name``), called by ``run``.

    ``name`` begins with the part of the broker it belongs to, such as ``mqtt-connect``. ``seeds`` returns valid inputs,
    also from the recorded corpus. ``tokens`` are byte strings with a meaning, for mutations. ``longest`` is the size of
    the longest input in bytes.
    """

    name: str
    run: Run
    covers: tuple[str, ...]
    seeds: Callable[[], Iterable[bytes]]
    tokens: tuple[bytes, ...] = field(default=())
    longest: int = LONGEST_INPUT
