"""The kept messages of one exchange, and their records in the store."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.kept import KeptRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.routing.kept_messages import KeptMessages, Room

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal


class StoredBox:
    """The kept messages of one exchange, ``kept``, and their records in the store.

    The store gets the changes of a turn together: of many messages under one name only the last is written.
    """

    def __init__(
        self,
        vhost_name: str,
        exchange_name: str,
        journal: "Journal",
        room: Room,
        refused: Callable[[], None],
        *,
        survives: bool,
    ) -> None:
        self.kept = KeptMessages(room, self._changed, refused)
        self.stored: set[str] = set()
        self._vhost_name = vhost_name
        self._exchange_name = exchange_name
        self._journal = journal
        self._survives = survives
        self._changes: dict[str, None] = {}
        self._number = 0
        self._is_restoring = False

    def restore(self, records: list[KeptRecord]) -> None:
        """Put recovered messages, in the order of their numbers."""
        self._is_restoring = True
        for record in sorted(records, key=lambda record: record.number):
            header = self._journal.formats[record.header_format].header(record.header)
            self._number = record.number
            self.stored.add(record.name)
            self.kept.put(record.name, Message(record.source, record.routing_key, header, record.body))
        self._is_restoring = False

    def _changed(self, name: str) -> None:
        if self._is_restoring or not self._survives:
            return
        if not self._changes:
            self._journal.at_end_of_turn(self._write)
        self._changes.pop(name, None)
        self._changes[name] = None
        message = self.kept.get(name)
        if message is not None and message.header.is_persistent:
            self._journal.store_indirectly()  # its confirm waits until it is durable

    def _write(self) -> None:
        changes, self._changes = self._changes, {}
        for name in changes:
            message = self.kept.get(name)
            if message is not None and message.header.is_persistent:
                self.stored.add(name)
                self._journal.record_large(Put(self._record(name, message)), len(message.body))
            elif name in self.stored:
                self.stored.remove(name)
                self._journal.record(Removed(KeptRecord.kind, (self._vhost_name, self._exchange_name, name)))

    def _record(self, name: str, message: Message) -> KeptRecord:
        self._number += 1
        header = message.header
        return KeptRecord(
            self._vhost_name,
            self._exchange_name,
            name,
            self._number,
            message.exchange,
            message.routing_key,
            header.format.name,
            header.raw,
            message.body,
        )
