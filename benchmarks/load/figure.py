"""A requirement on the gateway alone, without another broker for comparison."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured and a required figure, as the report shows them; ``is_met`` is None without a requirement."""

    name: str
    measured: str
    required: str = ""
    is_met: bool | None = None


def at_least(name: str, measured: float, required: float) -> Figure:
    """Return a figure with a lower limit."""
    return Figure(name, f"{measured:,.0f}", f">= {required:,.0f}", measured >= required)


def at_most(name: str, measured: float, required: float, digits: int = 0) -> Figure:
    """Return a figure with an upper limit."""
    return Figure(name, f"{measured:,.{digits}f}", f"<= {required:,.{digits}f}", measured <= required)
