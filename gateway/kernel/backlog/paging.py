"""Paging of a long queue's messages from memory to the store and back."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.errors import GatewayError
from gateway.kernel.messages.message import Header, Message
from gateway.kernel.messages.paged_segment import DURABLE, REDELIVERED, PagedSegment
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.messages.stored_message import StoredMessage

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: The number of messages that a turn may page in, and the further number for each message enqueued in that turn.
MOVED_IN_A_TURN: Final = 4096
MOVED_FOR_EACH: Final = 2

#: The number of messages that a turn may page out, besides one for each message enqueued in that turn; then page-outs
#: are deferred. A message takes about a microsecond, several when the garbage collector and the store's thread run.
PAGED_OUT_IN_A_TURN: Final = 1024


class Paging:
    """Moves runs of waiting messages to the store and back.

    A durable message is in the store already. Any other is *spilled* there, to be read back once by this process.
    ``reads`` and ``spills`` count messages since the start.
    """

    __slots__ = ("_journal", "reads", "spills")

    def __init__(self, journal: "Journal") -> None:
        self._journal = journal
        self.reads = 0
        self.spills = 0

    @property
    def may_move(self) -> bool:
        """Whether this turn may page in more messages."""
        journal = self._journal
        return journal.moved < MOVED_IN_A_TURN + MOVED_FOR_EACH * (journal.position - journal.turn_position)

    @property
    def may_page_out(self) -> bool:
        """Whether this turn may page out more messages."""
        journal = self._journal
        return journal.moved < PAGED_OUT_IN_A_TURN + journal.position - journal.turn_position

    def page_out_later(self, page_out: Callable[[], None]) -> None:
        """Call ``page_out`` in a later turn, and hold the input of the connection at hand until then."""
        self._journal.deferred.add(page_out)

    def wait_for_page_outs(self) -> None:
        """Hold the input of the connection at hand until all page-outs of later turns are done."""
        self._journal.deferred.hold()

    def contain(self, call: Callable[[], None]) -> None:
        """Call ``call``; a fault is reported, and not raised."""
        self._journal.contain(call)

    def moved(self, count: int) -> None:
        """Count messages that were paged out or in, and charge them to the turn's budget."""
        self._journal.moved += count
        self._journal.budget.work += count

    def page_out(self, entries: list[QueuedMessage]) -> PagedSegment:
        """Return a segment for these entries, whose contents no longer have to be in memory."""
        self.moved(len(entries))
        segment = PagedSegment()
        segment.extend(  # a column at a time: half the work of a message at a time
            (
                [entry.position for entry in entries],
                [entry.message.id if entry.is_durable else self._spilled(entry.message) for entry in entries],
                [entry.enqueued_at_ms for entry in entries],
                [entry.deliveries for entry in entries],
                [len(entry.message.body) for entry in entries],
                bytes([_flags(entry) for entry in entries]),
            )
        )
        return segment

    def page_in(self, segment: PagedSegment) -> list[QueuedMessage]:
        """Return the entries of a segment with their contents; spilled contents are removed from the store."""
        self.moved(len(segment))
        entries = []
        for row, entry in enumerate(self.peek(segment)):
            if entry is None:  # the content is missing in the store, so it cannot be delivered
                self._journal.lost(segment.positions[row])
                continue
            self.reads += 1
            if not entry.is_durable:
                self._journal.unspilled(segment.content_ids[row])
            entries.append(entry)
        return entries

    def peek(self, segment: PagedSegment) -> list[QueuedMessage | None]:
        """Return the entries of a segment without changing anything; ``None`` stands for a lost content."""
        content_ids = segment.content_ids.tolist()
        positions, enqueued_at_ms = segment.positions.tolist(), segment.enqueued_at_ms.tolist()
        delivery_counts, all_flags = segment.delivery_counts.tolist(), segment.flags.tolist()
        entries: list[QueuedMessage | None] = []
        last: StoredMessage | None = None
        header: Header | None = None
        for row, stored in enumerate(self._journal.contents(content_ids)):
            if stored is None:
                entries.append(None)
                continue
            if last is None or stored.header is not last.header or stored.header_format is not last.header_format:
                last, header = stored, self._header(stored, content_ids[row])
            if header is None:
                last = None  # each one whose header cannot be decoded is set aside
                entries.append(None)
                continue
            message = Message(stored.exchange, stored.routing_key, header, stored.body)
            flags = all_flags[row]
            is_durable = flags & DURABLE != 0
            if is_durable:
                message.id = content_ids[row]
            entry = QueuedMessage(message, positions[row], enqueued_at_ms[row], is_durable)
            entry.is_redelivered = flags & REDELIVERED != 0
            entry.deliveries = delivery_counts[row]
            entries.append(entry)
        return entries

    def _spilled(self, message: Message) -> int:
        self.spills += 1
        return self._journal.spilled(message)

    def message(self, stored: StoredMessage, content_id: int) -> Message | None:
        """Return the message of a content, as its publisher sent it.

        If its header cannot be decoded it is quarantined in the store; then return ``None``.
        """
        header = self._header(stored, content_id)
        return None if header is None else Message(stored.exchange, stored.routing_key, header, stored.body)

    def _header(self, stored: StoredMessage, content_id: int) -> Header | None:
        try:
            return self._journal.formats[stored.header_format].header(stored.header)
        except (GatewayError, LookupError, ValueError) as error:
            self._journal.set_aside(content_id, f"{type(error).__name__}: {error}")
            return None


def _flags(entry: QueuedMessage) -> int:
    return (DURABLE if entry.is_durable else 0) | (REDELIVERED if entry.is_redelivered else 0)
