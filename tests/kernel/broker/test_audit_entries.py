"""Encoded entries of the audit record in memory."""

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.broker.audit_entries import AuditEntries, AuditEntry
from gateway.kernel.journal.entity_codec import encode_entity
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.kernel.messages.message import Value


def entry(number: int, size: int = 100) -> AuditEntry:
    return AuditEntry(number, 1000 + number, random.Random(number).randbytes(size))


@given(st.lists(st.one_of(st.integers(0, 40_000), st.just(None)), max_size=150))
def test_entries_come_back_as_they_were_added_without_the_dropped_ones(actions: list[int | None]) -> None:
    """A number adds an entry of this size, ``None`` drops the oldest."""
    entries, expected = AuditEntries(), list[AuditEntry]()
    for number, size in enumerate(actions):
        if size is not None:
            expected.append(entry(number, size))
            entries.add(expected[-1])
        elif expected:
            assert entries.drop_oldest() == expected.pop(0).number
        assert (len(entries), entries.size) == (len(expected), sum(len(each.record) for each in expected))
        if expected:
            assert entries.oldest_ms == expected[0].at_ms
    assert list(entries.newest_first()) == expected[::-1]


def test_a_listing_shows_the_entries_as_they_were_at_its_start() -> None:
    entries = AuditEntries()
    for number in range(100):
        entries.add(entry(number))
    listing = entries.newest_first()
    assert next(listing).number == 99
    entries.add(entry(100))
    for _ in range(70):
        entries.drop_oldest()
    found = [each.number for each in listing]
    assert found == list(range(98, 98 - len(found), -1))
    assert found[-1] <= 70


def test_ten_thousand_typical_entries_take_little_memory() -> None:
    """They took 4.4 MB as one object each."""
    tracemalloc.start()
    entries = AuditEntries()
    for number in range(10_000):
        name = f"customer-{number}"
        state: dict[str, Value] = {"configure": ".*", "write": f"^{name}", "read": ".*"}
        record = AuditRecord(
            number, number, "guest", "127.0.0.1", "HTTP", "permission.created", name, "guest", None, state, {}
        )
        entries.add(AuditEntry(number, number, encode_entity(record)))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert entries.size > 2 * 2**20
    assert taken < entries.size / 2
