"""One row of the report about a move."""

from dataclasses import dataclass
from enum import Enum

from gateway.cli.ctl.values import Json


class MoveVerdict(Enum):
    """Whether the gateway has what the other broker uses."""

    SAME = "same"
    DIFFERS = "differs"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class MigrationFinding:
    """A thing that the other broker uses: its ``kind``, such as ``plugin``, its name, and how many there are."""

    kind: str
    name: str
    verdict: MoveVerdict
    note: str = ""
    count: int = 1

    def row(self) -> dict[str, Json]:
        """Return the columns of the report."""
        verdict = self.verdict.value
        return {"kind": self.kind, "name": self.name, "count": self.count, "verdict": verdict, "note": self.note}


COLUMNS = ("verdict", "kind", "name", "count", "note")
