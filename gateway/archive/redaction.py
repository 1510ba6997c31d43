"""Rules of the settings that replace parts of bodies before an archive is written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class BodyRule:
    """A rule ``NAME ROUTING_KEY PATH``: in bodies of archives of these names and with these keys the path is replaced.

    ``*`` in names and keys is any text.
    """

    name: str
    routing_key: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule of a text that the settings have checked."""
        return cls(*text.split(" "))

    def applies_to(self, name: str) -> bool:
        """Return whether the rule is one of the archive of this exchange or queue."""
        return re.fullmatch(".*".join(map(re.escape, self.name.split("*"))), name, re.DOTALL) is not None


def rules_of(rules: Iterable[BodyRule], name: str) -> list[tuple[str, str]]:
    """Return the routing keys and paths of the rules of an archive, for a request to the worker."""
    return [(rule.routing_key, rule.path) for rule in rules if rule.applies_to(name)]
