"""The option that chooses benchmarks by parts of their names."""

import argparse
from collections.abc import Sequence


def add_option(parser: argparse.ArgumentParser, kind: str = "benchmark") -> None:
    """Add ``--only``; ``kind`` is what has the names."""
    parser.add_argument("--only", action="append", metavar="NAME", help=f"part of a {kind}'s name; may be repeated")


def is_chosen(name: str, only: Sequence[str] | None) -> bool:
    """Return whether a benchmark of this name is to run; without the option each is."""
    return not only or any(part in name for part in only)
