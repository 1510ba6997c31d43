"""Patterns of names as operators write them: regular expressions that match anywhere unless anchored.

The compiler is a port, because the kernel imports the standard library only, whose engine takes exponential time for
some patterns (ADR 0016).
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

NOTHING: Final = "^$"
"""The meaning of an empty pattern in a permission: it matches no existing name."""

EVERYTHING = ".*"
"""The meaning of an empty pattern in a policy, as in RabbitMQ."""


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
    """Replaces a stored pattern that no longer compiles."""

    __slots__ = ()

    def matches(self, text: str) -> bool:
        """Return False."""
        return False
