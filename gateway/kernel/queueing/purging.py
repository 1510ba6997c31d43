"""The removal of many messages from the store, in steps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.paged_segment import PagedSegment
    from gateway.kernel.messages.queued_message import QueuedMessage

#: Messages that are removed between two checks of the clock.
_STEP: Final = 64


def removal_steps(journal: "Journal", entries: "list[QueuedMessage]", segments: "list[PagedSegment]") -> Iterator[None]:
    """Return the steps that remove messages and paged segments from the store; the queue has them no more."""
    for number, entry in enumerate(drained(entries)):
        if entry.is_durable:
            journal.dequeued(entry.position, entry.message)
        if number % _STEP == _STEP - 1:
            yield
    for segment in drained(segments):
        journal.dequeued_segment(segment)
        yield
