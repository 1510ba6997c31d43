"""A requirement on the gateway alone, without another broker for comparison."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured and a required figure, as the report shows them; ``is_met`` is None without a requirement."""

    name: str
    measured: str
    owed: str = ""
    is_met: bool | None = None


def at_least(name: str, measured: float, owed: float) -> Figure:
    """Return a figure with a lower limit."""
    return Figure(name, f"{measured:,.0f}", f">= {owed:,.0f}", measured >= owed)


def at_most(name: str, measured: float, owed: float, digits: int = 0) -> Figure:
    """Return a figure with an upper limit."""
    return Figure(name, f"{measured:,.{digits}f}", f"<= {owed:,.{digits}f}", measured <= owed)
