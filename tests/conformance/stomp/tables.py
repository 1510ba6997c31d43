"""Rows of the conformance tables: what a client writes in one piece, and the lines that come back."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from _pytest.mark import ParameterSet

from tests.conformance.stomp.statements import STATEMENTS, show

Row: TypeAlias = ParameterSet

CLOSED = "closed"

#: What a row sends: the same in every version, or what a function makes for one.
Sent: TypeAlias = "bytes | Callable[[str], bytes]"


def states(statement: str, *versions: str) -> pytest.MarkDecorator:
    """Run a test with each ``version`` that the statement holds for, or with these of them."""
    each = versions or STATEMENTS[statement]
    return pytest.mark.parametrize("version", [pytest.param(version, id=show(statement, version)) for version in each])


def rows(statement: str, what: str, sent: Sent, *lines: str, versions: str = "") -> list[Row]:
    """Return a row for each version that the statement holds for; ``what`` says in words what is sent."""
    return [
        pytest.param(
            version,
            sent if isinstance(sent, bytes) else sent(version),
            list(lines),
            id=f"{show(statement, version)} ({what})",
        )
        for version in versions.split() or STATEMENTS[statement]
    ]


def error(message: str, receipt: str = "") -> tuple[str, str]:
    """The lines of an ERROR, and of the end it is."""
    return f"ERROR {message}" + (f" of {receipt}" if receipt else ""), CLOSED
