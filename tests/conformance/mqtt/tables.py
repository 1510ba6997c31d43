"""Rows of the conformance tables: the packets of a client in one write, and the lines of the answer.

A row may apply to both versions. Its lines are then those of 5.0. 3.1.1 has no DISCONNECT from a server, no return code
for a malformed CONNECT and no reason in acknowledgements; ``worded`` removes those.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

import pytest
from _pytest.mark import ParameterSet

from tests.conformance.mqtt.statements import show
from tests.protocols.mqtt.packets import WRITERS, Writer

Row: TypeAlias = ParameterSet
Sent: TypeAlias = Callable[[Writer], bytes]

CLOSED = "closed"
MALFORMED = ("DISCONNECT MALFORMED_PACKET", CLOSED)
PROTOCOL_ERROR = ("DISCONNECT PROTOCOL_ERROR", CLOSED)
NOT_A_TOPIC = ("DISCONNECT TOPIC_NAME_INVALID", CLOSED)

_REASON = re.compile(r"^(PUBACK|PUBREC|PUBREL|PUBCOMP) (#\d+) [A-Z_]+$")
_ONLY_5 = re.compile(r"DISCONNECT |CONNACK [A-Z_]{3,}$")


def statements(v5: str = "", v4: str = "") -> pytest.MarkDecorator:
    """Run a test with ``version`` 5 and 4 if it has statements of that version, given as text separated by spaces."""
    given = [(version, ids) for version, ids in ((5, v5), (4, v4)) if ids]
    return pytest.mark.parametrize("version", [pytest.param(version, id=show(version, ids)) for version, ids in given])


def rows(what: str, v5: str, v4: str, sent: Sent, *lines: str) -> list[Row]:
    """Return a row for each version with a statement; ``what`` describes the packets."""
    given = [(version, ids) for version, ids in ((5, v5), (4, v4)) if ids]
    return [
        pytest.param(version, sent(WRITERS[version]), worded(version, *lines), id=f"{show(version, ids)} {what}")
        for version, ids in given
    ]


def worded(version: int, *lines: str) -> list[str]:
    """Return lines of 5.0 as a client of this version receives them."""
    if version == 5:
        return list(lines)
    return [_REASON.sub(r"\1 \2", line) for line in lines if not _ONLY_5.match(line)]
