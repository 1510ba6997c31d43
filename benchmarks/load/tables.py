"""Markdown tables, aligned for terminals, and the text in their cells."""

from collections.abc import Iterable, Sequence

from benchmarks.load.latency import Latency

Row = Sequence[str]


def table(rows: Iterable[Row]) -> list[str]:
    """Format rows as a table; the first is the head."""
    lines = [list(row) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]


def percentiles(latency: Latency | None) -> str:
    """Return the median and the high percentile in milliseconds."""
    return f"{latency.p50_ms:.3g} / {latency.p99_ms:.3g}" if latency else "-"


def mb(octets: int) -> str:
    """Return whole megabytes."""
    return f"{octets / 1e6:,.0f}"


def met(is_met: bool | None) -> str:
    """Return whether a requirement is met; empty without a requirement."""
    return {True: "yes", False: "NO", None: ""}[is_met]
