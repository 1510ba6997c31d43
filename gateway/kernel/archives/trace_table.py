"""The trace table: the message events of one virtual host, written to a stream.

The events of a turn form one message of the stream, so they become durable together with the changes they describe.
Queues have the tracing feature only while the table is on, so it costs nothing while it is off.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.archives.archive import TRACE
from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header

if TYPE_CHECKING:
    from gateway.kernel.archives.archive import Archive
    from gateway.kernel.archives.archives import Archives
    from gateway.kernel.archives.message_trace import MessageTrace
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.death_records import DeathReason
    from gateway.kernel.messages.message import Header
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
    from gateway.kernel.queueing.queue_identity import QueueIdentity

Row: TypeAlias = "list[str | int | bool | None]"
"""One event; ``TraceTable`` documents the columns."""

#: Queues of one message whose route has an event; one more event counts the others.
_MOST_ROUTES: Final = 1000

#: Rows that are encoded together, while they are added: those of a whole slice took as long as the slice.
_ENCODED_AT_ONCE: Final = 64

_ENCODE: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@mypyc_attr(acyclic=True, free_list_len=1)
class TracedMessage(Message):
    """A message with the number that identifies it in events, and its ``trace`` in memory, if it is sampled.

    A message paged out to disk loses both.
    """

    __slots__ = ("trace", "trace_id")

    def __init__(
        self,
        exchange: str,
        routing_key: str,
        header: "Header",
        body: bytes,
        trace_id: int,
        trace: "MessageTrace | None" = None,
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.header = header
        self.body = body
        self.id = 0
        self.trace_id = trace_id
        self.trace = trace

    def with_address(self, exchange: str, routing_key: str, header: "Header") -> "TracedMessage":
        """Return a message with the same content and number, and another address and header."""
        return TracedMessage(exchange, routing_key, header, self.body, self.trace_id, self.trace)


class TraceTable:
    """Records events while it ``is_on``.

    Columns of an event: kind of event, wall time (ms), monotonic time (ns), protocol, connection, user, queue,
    exchange, routing key, message id, number of the message, position in the queue, outcome, reason, whether it is
    redelivered, size of the body. A column that does not apply is ``None``.
    """

    def __init__(self, archives: "Archives", journal: "Journal", clock: "Clock") -> None:
        self._archives = archives
        self._journal = journal
        self._clock = clock
        self._archive: Archive | None = None
        self._rows: list[Row] = []
        self._encoded: list[str] = []
        self._count = 0  # of the rows of this turn
        self._header = native_header(Properties())
        self.dropped = 0
        self.is_on = False

    def set_enabled(self, is_on: bool) -> None:
        """Start or stop recording. After a restart, starting it again also keeps the events of the earlier run."""
        if is_on and self._archive is None:
            self._archive = self._archives.open(TRACE)
            self.is_on = True
        elif not is_on and self._archive is not None:
            self._flush()
            self._archive = None
            self.is_on = False
            self._archives.retire(TRACE)

    # Events

    def published(self, message: TracedMessage, queues: "Sequence[QueueIdentity]", origin: "Origin | None") -> None:
        """Record a publish and the queues it is routed to."""
        self._add("publish", message, origin=origin)
        for queue in queues[:_MOST_ROUTES]:
            self._add("route", message, queue.name)
        if len(queues) > _MOST_ROUTES:
            self._add("route", message, reason=f"{len(queues) - _MOST_ROUTES} more queues")

    def enqueued(self, queue: "QueueIdentity", message: Message, position: int | None) -> None:
        """Record that a queue accepted a message; ``position`` is ``None`` if it was settled on delivery."""
        self._add("enqueue", message, queue.name, position)

    def delivered(
        self, message: Message, queue: "QueueIdentity", redelivered: bool, origin: "Origin", position: int | None
    ) -> None:
        """Record a delivery."""
        self._add("deliver", message, queue.name, position, origin=origin, redelivered=redelivered)

    def settled(self, queue: "QueueIdentity", message: Message, position: int, outcome: "DeliveryOutcome") -> None:
        """Record the outcome of a delivery."""
        word = outcome.name.lower()
        self._add("requeue" if word == "requeued" else "settle", message, queue.name, position, outcome=word)

    def dropped_from(self, queue: "QueueIdentity", message: Message, reason: "DeathReason") -> None:
        """Record that a queue dropped or rejected a message."""
        self._add("expire" if reason.value == "expired" else "drop", message, queue.name, reason=reason.value)

    def dead_lettered(self, letter: Message, reason: "DeathReason") -> None:
        """Record the publish of a dead letter."""
        self._add("dead-letter", letter, reason=reason.value)

    def _add(
        self,
        event: str,
        message: Message,
        queue: str | None = None,
        position: int | None = None,
        *,
        origin: "Origin | None" = None,
        outcome: str | None = None,
        reason: str | None = None,
        redelivered: bool | None = None,
    ) -> None:
        if not self._count:
            self._journal.at_end_of_turn(self._flush)
        self._count += 1
        if len(self._rows) == _ENCODED_AT_ONCE:
            self._encode()
        self._rows.append(
            [
                event,
                self._journal.now_ms,
                int(self._clock.monotonic_s() * 1e9),
                None if origin is None else origin.protocol_in_traces,
                None if origin is None else origin.connection,
                None if origin is None else origin.user,
                queue,
                message.exchange,
                message.routing_key,
                message.properties.message_id,
                message.trace_id if isinstance(message, TracedMessage) else None,
                position,
                outcome,
                reason,
                redelivered,
                len(message.body),
            ]
        )

    def _flush(self) -> None:
        """Write the events of this turn; while the archive is full, only count them."""
        self._encode()
        count, self._count = self._count, 0
        encoded, self._encoded = self._encoded, []
        if self._archive is None or not count:
            return
        if self._archive.is_full:
            self.dropped += count
            return
        self._archive.keep(Message("", "", self._header, f"[{','.join(encoded)}]".encode()))

    def _encode(self) -> None:
        """Encode the rows that were added since the last call."""
        if self._rows:
            self._encoded.append(_ENCODE(self._rows)[1:-1])
            self._rows.clear()
