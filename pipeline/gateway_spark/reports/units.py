"""Values of results for people: durations in words, sizes, shares, and the names of their columns."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

#: The units of durations in seconds, the largest first.
_DURATIONS: Final = ((86_400, "day"), (3600, "h"), (60, "min"), (1, "s"))

_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")

#: Columns with a share of one.
SHARES: Final = frozenset({"redelivered", "precision", "recall"})

#: The beginnings of columns in milliseconds.
MILLISECONDS: Final = ("to_deliver_", "to_settle_", "in_all_")


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: ``362 days``, ``6 h 12 min``, ``1.5 s``, ``20 ms``."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 60:
        return f"{seconds * 1000:,.3g} ms" if 0 < seconds < 1 else f"{seconds:.3g} s"
    whole = round(seconds)
    for (size, name), (smaller, below) in pairwise(_DURATIONS):
        if whole >= size:
            count, rest = whole // size, whole % size // smaller
            if name == "day":
                more = f" {rest} {below}" if rest and count < 10 else ""
                return f"{count:,} day{'' if count == 1 else 's'}{more}"
            return f"{count} {name}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def size(count: float) -> str:
    """Return a number of bytes: ``640 B``, ``1.2 MiB``."""
    for name in _SIZES:
        if count < 1024 or name == _SIZES[-1]:
            break
        count /= 1024
    return f"{count:,.0f} B" if name == "B" else f"{count:,.1f} {name}"


def share(part: float) -> str:
    """Return a share of one in percent."""
    return f"{part:.2%}" if 0 < part < 0.1 else f"{part:.1%}"


def heading(column: str) -> str:
    """Return the name of a column for people, with its unit if its values have none."""
    name = column.removesuffix("_s") if column.endswith("_s") else column
    unit = ", ms" if column.startswith(MILLISECONDS) else ""
    return name.replace("_", " ") + unit


def writer_of(column: str) -> Callable[[Any], str] | None:
    """Return how the numbers of a column are written; ``None`` for numbers without a unit."""
    if column.endswith("_s"):
        return duration
    return size if column == "bytes" else share if column in SHARES else None


def options_in_words(options: Mapping[str, Any]) -> str:
    """Return the options of a run; those in seconds are durations."""
    return ", ".join(f"{name.replace('_', '-')} = {_option(name, value)}" for name, value in options.items())


#: Options in seconds.
_SECONDS: Final = frozenset({"every", "session_gap", "retain", "grace"})


def _option(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return duration(value) if name in _SECONDS else str(value)
