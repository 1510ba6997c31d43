"""A figure the gateway owes by itself: there is no other broker to compare it with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured and what is owed, as the report shows them; ``is_met`` is None where nothing is owed."""

    name: str
    measured: str
    owed: str = ""
    is_met: bool | None = None


def at_least(name: str, measured: float, owed: float) -> Figure:
    """A figure that may be no less than owed."""
    return Figure(name, f"{measured:,.0f}", f">= {owed:,.0f}", measured >= owed)


def at_most(name: str, measured: float, owed: float, digits: int = 0) -> Figure:
    """A figure that may be no more than owed."""
    return Figure(name, f"{measured:,.{digits}f}", f"<= {owed:,.{digits}f}", measured <= owed)
