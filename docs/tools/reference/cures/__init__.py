"""The cause and the cure of each error text. A text without one fails ``make docs``.

A rule names the texts of one kind of error by a regular expression; the first that matches counts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from docs.tools.reference.cures.configuration import CONFIGURATION
from docs.tools.reference.cures.cure import Cure
from docs.tools.reference.cures.preconditions import PRECONDITIONS
from docs.tools.reference.cures.requests import REQUESTS
from docs.tools.reference.cures.storage import STORAGE

__all__ = ["CURES", "Cure", "MissingCure", "cure_of", "unused"]

CURES: Final[Mapping[str, Sequence[Cure]]] = {
    **REQUESTS,
    "PreconditionFailed": PRECONDITIONS,
    "ConfigurationError": CONFIGURATION,
    "StorageError": STORAGE,
}


class MissingCure(Exception):
    """An error text of the sources has no cause and cure yet."""


def cure_of(kind: str, text: str) -> Cure:
    """Return the cause and the cure of an error text. :raises MissingCure: if no rule names the text."""
    for cure in CURES.get(kind, ()):
        if re.search(cure.pattern, text):
            return cure
    raise MissingCure(f"docs/tools/reference/cures: the text of a {kind} has no cause and cure: {text!r}")


def unused(texts: Sequence[tuple[str, str]]) -> Iterator[Cure]:
    """Yield the rules that none of these texts needs, given as kinds and texts."""
    used = {id(cure_of(kind, text)) for kind, text in texts}
    yield from (cure for cures in CURES.values() for cure in cures if id(cure) not in used)
