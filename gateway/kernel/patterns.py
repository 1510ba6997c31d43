"""Patterns of names as operators write them: regular expressions that match anywhere unless anchored.

What compiles them is a port, as the kernel imports the standard library only, and that library's engine takes
exponential time for some patterns (ADR 0016).
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

NOTHING: Final = "^$"
"""What the empty pattern of a permission stands for: it matches no name that exists."""

EVERYTHING = ".*"
"""What the empty pattern of a policy stands for, as in RabbitMQ."""


class Pattern(Protocol):
    """A compiled pattern. A search takes time linear in the text."""

    def matches(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text."""
        ...


Compile: TypeAlias = Callable[[str], Pattern]
"""Compiles a pattern; the empty one matches nothing.

:raises PreconditionFailed: when it is not a regular expression, or one that the engine does not support.
"""


class NeverMatching:
    """Stands for a stored pattern that does not compile any more."""

    __slots__ = ()

    def matches(self, text: str) -> bool:
        """Whether the pattern is found: never."""
        return False
