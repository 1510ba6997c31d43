"""The check of free file descriptors, which is made for some of the new connections while many are free."""

import resource
from collections.abc import Callable

import pytest

from gateway.net import descriptors
from gateway.net.descriptors import RESERVED, DescriptorCheck, DescriptorGate, free_descriptors


class Table:
    """Free descriptors; ``looks`` counts how often their number was asked for."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        return self.free


def connect(check: Callable[[], bool], table: Table) -> bool:
    """Return whether a connection is refused; one that is not takes a descriptor."""
    is_refused = check()
    table.free -= not is_refused
    return is_refused


def test_the_reserved_descriptors_are_never_used() -> None:
    table = Table(5000)
    check = DescriptorCheck(table)
    accepted = 0
    while not connect(check, table):
        accepted += 1
        assert table.free >= 0
    assert (table.free, accepted) == (0, 5000)


def test_all_listeners_share_one_check() -> None:
    """Each with a check of its own could be ahead of it by as many connections as are reserved."""
    assert DescriptorGate("amqp", None)._are_short is DescriptorGate("mqtt", None)._are_short


def test_each_connection_is_checked_once_few_are_left() -> None:
    table = Table(15)
    check = DescriptorCheck(table)
    assert [connect(check, table) for _ in range(17)] == [False] * 15 + [True] * 2
    assert table.looks == 17


def test_few_connections_are_checked_while_many_are_free() -> None:
    table = Table(100_000)
    check = DescriptorCheck(table)
    assert not any(connect(check, table) for _ in range(1000))
    assert table.looks == 16


def test_no_free_descriptor_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(24, "Too many open files")

    assert 0 < free_descriptors() <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED
    monkeypatch.setattr(descriptors.os, "open", refuse)
    assert free_descriptors() == 0
    assert DescriptorCheck()()
