"""The numbered normative statements of MQTT 5.0 and 3.1.1 (Appendix B of either), and those without a test here.

A test names its statements with ``statements`` or ``rows`` of ``tables.py``; they are collected in ``shown``.
Statements that do not apply to a server are in ``NOT_OURS`` with a word for the reason.
"""

from collections.abc import Iterator, Mapping
from typing import Final

#: Statement numbers by section: a count, or the first and the last.
_SECTIONS_5: Final[Mapping[str, int | tuple[int, int]]] = {
    "1.5.4": 3, "1.5.5": 1, "1.5.7": 1,
    "2.1.3": 1, "2.2.1": (2, 6), "2.2.2": 1,
    "3.1.0": 2, "3.1.2": 30, "3.1.3": 12, "3.1.4": 6,
    "3.2.0": 2, "3.2.2": 22,
    "3.3.1": 13, "3.3.2": 20, "3.3.4": 10,
    "3.4.2": 3, "3.5.2": 3, "3.6.1": 1, "3.6.2": 3, "3.7.2": 3,
    "3.8.1": 1, "3.8.3": 5, "3.8.4": 8, "3.9.2": 2, "3.9.3": 2,
    "3.10.1": 1, "3.10.3": 2, "3.10.4": 6, "3.11.2": 2, "3.11.3": 2,
    "3.12.4": 1,
    "3.14.0": 1, "3.14.1": 1, "3.14.2": 4, "3.14.4": 3,
    "3.15.1": 1, "3.15.2": 3,
    "4.1.0": 2, "4.2.0": 1, "4.3.1": 1, "4.3.2": 5, "4.3.3": 13, "4.4.0": 2, "4.5.0": 2, "4.6.0": 6,
    "4.7.0": 1, "4.7.1": 2, "4.7.2": 1, "4.7.3": 4, "4.8.2": 6, "4.9.0": 3,
    "4.12.0": 7, "4.12.1": 2, "4.13.1": 1, "4.13.2": 1,
    "6.0.0": 4,
}  # fmt: skip

_SECTIONS_4: Final[Mapping[str, int | tuple[int, int]]] = {
    "1.5.3": 3,
    "2.2.2": 2, "2.3.1": 7,
    "3.1.0": 2, "3.1.2": 24, "3.1.3": 11, "3.1.4": 5,
    "3.2.0": 1, "3.2.2": 6,
    "3.3.1": 12, "3.3.2": 3, "3.3.4": 1, "3.3.5": 2,
    "3.6.1": 1,
    "3.8.1": 1, "3.8.3": 4, "3.8.4": 6, "3.9.3": 2,
    "3.10.1": 1, "3.10.3": 2, "3.10.4": 6,
    "3.12.4": 1,
    "3.14.1": 1, "3.14.4": 3,
    "4.1.0": 2, "4.3.1": 1, "4.3.2": 2, "4.3.3": 2, "4.4.0": 1, "4.5.0": 2, "4.6.0": 6,
    "4.7.1": 3, "4.7.2": 1, "4.7.3": 4, "4.8.0": 2,
    "6.0.0": 4,
    "7.0.0": 2, "7.1.1": 1, "7.1.2": 1,
}  # fmt: skip


def _numbered(sections: Mapping[str, int | tuple[int, int]]) -> Iterator[str]:
    for section, numbers in sections.items():
        first, last = (1, numbers) if isinstance(numbers, int) else numbers
        yield from (f"{section}-{number}" for number in range(first, last + 1))


#: All statements by version: 5 for 5.0 and 4 for 3.1.1. Two misprints of 3.1.1 are corrected: MQTT-3.1.2-7 for
#: MQTT-3.1.2.7, and MQTT-3.8.3-4 for MQTT-3-8.3-4.
STATEMENTS: Final[Mapping[int, frozenset[str]]] = {
    5: frozenset(_numbered(_SECTIONS_5)),
    4: frozenset(_numbered(_SECTIONS_4)),
}

#: Statements that a server cannot violate: ``client`` is for clients, ``bridge`` for a server acting as one.
NOT_OURS: Final[Mapping[int, Mapping[str, str]]] = {
    5: {
        "3.1.2-20": "client",  # sends PINGREQ in time
        "3.1.2-21": "client",  # uses Server Keep Alive
        "3.2.2-4": "client",  # closes if CONNACK announces a session it does not have
        "3.2.2-5": "client",  # discards its session if CONNACK announces none
        "3.2.2-11": "client",  # respects Maximum QoS, which is never sent
        "3.2.2-14": "client",  # respects Retain Available, which is never sent
        "3.2.2-21": "client",  # uses Server Keep Alive
        "3.3.2-10": "client",  # accepts the aliases it allowed
        "3.3.4-8": "client",  # delays nothing but PUBLISH
        "4.5.0-2": "client",  # acknowledges unwanted messages
        "4.6.0-1": "client",  # resends in order
        "6.0.0-3": "client",  # offers the subprotocol; 6.0.0-4 is about those that do not
    },
    4: {
        "2.3.1-2": "client",  # assigns identifiers
        "2.3.1-3": "client",  # keeps them when it resends
        "3.1.2-23": "client",  # sends PINGREQ in time
        "3.1.3-7": "client",  # asks for a clean session when it has no identifier
        "3.14.4-1": "client",  # closes after DISCONNECT
        "4.5.0-2": "client",  # acknowledges unwanted messages
        "6.0.0-3": "client",  # offers the subprotocol
        "7.0.0-1": "bridge",
        "7.1.2-1": "client",  # supports a transport
    },
}

#: The statements with tests, by version; filled when the test modules are imported.
shown: Final[dict[int, set[str]]] = {5: set(), 4: set()}


def show(version: int, ids: str) -> str:
    """Record that a test covers these statements; return its name in the list of tests."""
    numbers = ids.split()
    unknown = [number for number in numbers if number not in STATEMENTS[version]]
    assert not unknown, f"{unknown} are not statements of version {version}"
    shown[version].update(numbers)
    return f"{'5.0' if version == 5 else '3.1.1'}: {' '.join(f'[MQTT-{number}]' for number in numbers)}"
