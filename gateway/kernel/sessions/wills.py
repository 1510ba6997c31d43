"""MQTT wills: messages published when a client disconnects unexpectedly, perhaps after a delay (3.1.3.2.2)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gateway.kernel.clock import drained
from gateway.kernel.deadlines import Deadlines
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.sessions import WillRecord
from gateway.kernel.messages.message import Message

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.journal import Journal


class Wills:
    """Owns the delayed wills of one virtual host; calls ``publish(message, is_retained, client_id)`` when one is due.

    They survive restarts: a will that became due meanwhile is published at the start.
    """

    def __init__(
        self, vhost_name: str, journal: "Journal", clock: "Clock", publish: Callable[[Message, bool, str], None]
    ) -> None:
        self._vhost_name = vhost_name
        self._journal = journal
        self._clock = clock
        self._publish = publish
        self._waiting: dict[str, tuple[Message, bool]] = {}
        self._deadlines = Deadlines(clock, self.publish_now)

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, client_id: str) -> bool:
        return client_id in self._waiting

    def leave(self, client_id: str, message: Message, is_retained: bool, delay_s: float) -> None:
        """Publish a will now, or after a delay unless the client reconnects."""
        if delay_s <= 0:
            self._publish(message, is_retained, client_id)
            return
        due_at_ms = self._journal.now_ms + int(delay_s * 1000)
        header = message.header
        record = WillRecord(
            self._vhost_name,
            client_id,
            message.exchange,
            message.routing_key,
            header.format.name,
            header.raw,
            message.body,
            is_retained,
            due_at_ms,
        )
        self._journal.record(Put(record))
        self._wait(client_id, message, is_retained, delay_s)

    def cancel(self, client_id: str) -> None:
        """Cancel a client's will, because it reconnected (MQTT-3.1.3-9)."""
        self._take(client_id)

    def publish_now(self, client_id: str) -> None:
        """Publish a client's delayed will now, because its session ends."""
        taken = self._take(client_id)
        if taken is not None:
            self._publish(*taken, client_id)

    def release(self) -> None:
        """Release the callback: the virtual host was deleted."""
        self._publish = lambda message, is_retained, client_id: None
        self._deadlines.release()

    def install(self, record: WillRecord) -> None:
        """Restore a delayed will."""
        header = self._journal.formats[record.header_format].header(record.header)
        message = Message(record.exchange, record.routing_key, header, record.body)
        delay_s = max(0.0, (record.due_at_ms - self._clock.wall_ms()) / 1000)
        self._wait(record.client_id, message, record.is_retained, delay_s)

    def erasing(self) -> Iterator[None]:
        """Return the steps that remove all of them: the virtual host is deleted."""
        for client_id in drained(list(self._waiting)):
            self._take(client_id)
            yield

    def _wait(self, client_id: str, message: Message, is_retained: bool, delay_s: float) -> None:
        self._waiting[client_id] = (message, is_retained)
        self._deadlines.set(client_id, delay_s)

    def _take(self, client_id: str) -> tuple[Message, bool] | None:
        waiting = self._waiting.pop(client_id, None)
        if waiting is not None:
            self._deadlines.drop(client_id)
            self._journal.record(Removed(WillRecord.kind, (self._vhost_name, client_id)))
        return waiting
