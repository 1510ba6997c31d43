"""Paging: contents that are read together share a header only if it has the same meaning."""

from gateway.kernel.backlog.paging import Paging
from gateway.kernel.journal.changes import SetAside
from gateway.kernel.journal.stored_changes import message_of
from gateway.kernel.messages.message import Properties
from gateway.kernel.messages.native_header import NATIVE, native_header
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.messages.stored_message import StoredMessage
from gateway.testing import MemoryBroker

RAW = native_header(Properties(priority=3)).raw


def stored(form: str, header: bytes = RAW, body: bytes = b"body") -> StoredMessage:
    return StoredMessage("x", "key", form, header, body)


def paged_and_read(*contents: StoredMessage) -> "tuple[list[QueuedMessage | None], list[SetAside]]":
    """Return the entries that are read again, and what is set aside meanwhile."""
    journal = MemoryBroker().kernel.journal
    asides: list[SetAside] = []
    journal.on_set_aside = asides.append
    paging = Paging(journal)
    entries = [QueuedMessage(message_of(each), at, 7, False) for at, each in enumerate(contents, 1)]
    for entry in entries:
        entry.deliveries, entry.is_redelivered = entry.position, entry.position == 2
    return paging.peek(paging.page_out(entries)), asides


def test_entries_are_read_as_they_were_paged_out() -> None:
    read, asides = paged_and_read(*(stored(NATIVE.name, body=b"%d" % number) for number in range(3)))
    found = [entry for entry in read if entry is not None]
    assert [(entry.position, entry.message.body, entry.deliveries) for entry in found] == [
        (1, b"0", 1),
        (2, b"1", 2),
        (3, b"2", 3),
    ]
    assert [entry.is_redelivered for entry in found] == [False, True, False]
    assert {entry.enqueued_at_ms for entry in found} == {7}
    assert all(entry.message.header.priority == 3 for entry in found)
    assert found[0].message.header is found[1].message.header
    assert not asides


def test_each_content_whose_header_cannot_be_decoded_is_set_aside() -> None:
    good, bad = stored(NATIVE.name), stored("unknown")
    read, asides = paged_and_read(good, bad, bad, good, bad)
    assert [entry is not None for entry in read] == [True, False, False, True, False]
    assert len({aside.key for aside in asides}) == 3


def test_the_same_bytes_in_another_format_are_another_header() -> None:
    read, _ = paged_and_read(stored(NATIVE.name), stored("unknown"), stored(NATIVE.name))
    assert [entry is not None for entry in read] == [True, False, True]
