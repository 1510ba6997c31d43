"""Rows of the conformance tables: bytes that a client sends in one write, and the lines of the answers."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from _pytest.mark import ParameterSet

from tests.conformance.stomp.statements import STATEMENTS, show

Row: TypeAlias = ParameterSet

CLOSED = "closed"

#: The input of a row: bytes for all versions, or a function that returns those of one version.
Sent: TypeAlias = "bytes | Callable[[str], bytes]"


def states(statement: str, *versions: str) -> pytest.MarkDecorator:
    """Run a test with each ``version`` to which the statement applies, or with these of them."""
    each = versions or STATEMENTS[statement]
    return pytest.mark.parametrize("version", [pytest.param(version, id=show(statement, version)) for version in each])


def rows(statement: str, what: str, sent: Sent, *lines: str, versions: str = "") -> list[Row]:
    """Return a row for each version to which the statement applies; ``what`` describes the input."""
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
    """Return the lines of an ERROR and of the close that follows it."""
    return f"ERROR {message}" + (f" of {receipt}" if receipt else ""), CLOSED
