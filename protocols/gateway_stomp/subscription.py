"""One subscription: a consumer of one queue, and its MESSAGE frames."""

from enum import Enum
from typing import TYPE_CHECKING, Final

from gateway.kernel.caches import remember
from gateway.kernel.counters import Counters
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.ack_timeout import AckTimeout
from gateway.kernel.queueing.consumer import Consumer, Selection, Subscriber
from gateway.kernel.queueing.ledger import Ledger
from gateway_stomp.destinations import Destination
from gateway_stomp.scope import Scope
from gateway_stomp.stream_headers import OFFSET
from gateway_stomp.versions import Version

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue_like import QueueLike

#: Beginnings of frames cached per subscription; when there are more, all are dropped.
_KEPT: Final = 256


class AckMode(Enum):
    """The acknowledgement mode of a subscription (1.2, "SUBSCRIBE ack Header")."""

    AUTO = "auto"  # settled when sent
    CLIENT = "client"  # settled by an ACK, with all earlier ones
    INDIVIDUAL = "client-individual"  # settled by an ACK each


class Subscription(Subscriber):
    """The subscription created by one SUBSCRIBE. ``tag`` is its name in message-ids.

    Owns the ``ledger`` of unsettled deliveries. ``is_forgettable``: the subscription is durable and may be deleted by
    an UNSUBSCRIBE. ``queue``, ``counters`` (of settlements) and ``is_of_stream`` (messages carry their offsets) are set
    once by the creator. The consumer is not kept here, which would be a reference cycle. A ``selection`` is only used
    on a queue of its own: messages that do not match are consumed without delivery.
    """

    __slots__ = (
        "_ack_beginning",
        "_beginning",
        "_beginnings",
        "_encoder",
        "_exchange",
        "_outbox",
        "_routing_key",
        "_scope",
        "_selection",
        "ack_timeout",
        "counters",
        "destination",
        "id",
        "is_of_stream",
        "ledger",
        "mode",
        "queue",
        "tag",
    )

    def __init__(
        self,
        scope: Scope,
        id: str,
        tag: str,
        destination: Destination | None,
        mode: AckMode,
        ledger: Ledger,
        selection: Selection | None = None,
    ) -> None:
        self.id = id
        self.tag = tag
        self.destination = destination
        self.mode = mode
        self.ledger = ledger
        self.ack_timeout = AckTimeout()
        self.queue: QueueLike
        self.counters: Counters
        self.is_of_stream = False
        self._scope = scope
        self._outbox = scope.outbox
        self._encoder = scope.settings.encoders.of(scope.version)
        self._selection = selection
        self._beginnings: dict[tuple[str, str], bytes] = {}
        self._exchange: str | None = None  # this and the key are those of the last message, whose frame began like this
        self._routing_key: str | None = None
        self._beginning = b""
        self._ack_beginning = b""
        if scope.version is Version.V12 and mode is not AckMode.AUTO:
            self._ack_beginning = b"\nack:" + self._message_ids()

    @property
    def origin(self) -> Origin:
        """The connection and channel, for listings."""
        return self._scope.origin

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: "QueuedMessage | None") -> None:
        """Write a MESSAGE to the outbox, which rejects further deliveries when it is full."""
        if self._selection is not None:
            deliveries = 0 if entry is None else entry.deliveries
            if not self._selection.wants(message, deliveries, redelivered):
                self._pass_over(consumer, entry)
                return
        tag = self.ledger.deliver(consumer, entry, redelivered)
        if message.routing_key is not self._routing_key or message.exchange is not self._exchange:
            self._begin(message)
        if self.is_of_stream and entry is not None:
            rest = self._with_offset(message, entry.position)
        else:
            rest = self._encoder.rest(message, redelivered)
        outbox = self._outbox
        if self._ack_beginning:
            outbox.pieces += (self._beginning, b"%d%b%d" % (tag, self._ack_beginning, tag), rest)
        else:
            outbox.pieces += (self._beginning, b"%d" % tag, rest)
        outbox.delivered(len(rest) + 100)
        tracing = self._scope.vhost.tracing
        if tracing is not None:
            tracing.delivered(message, consumer.queue, redelivered, self._scope.origin, entry)

    def cancelled(self, consumer: Consumer) -> None:
        """Report that the queue was deleted, and with it the subscription."""
        what = f"id='{self.id}'" if self.tag.startswith("T_") else f"destination='{self.tag[2:]}'"
        reason = f'The server has canceled a subscription.\nNo more messages will be delivered for "{what}".\n'
        self._scope.host.subscription_cancelled(self.tag, reason)

    def _pass_over(self, consumer: Consumer, entry: "QueuedMessage | None") -> None:
        """Settle a message of the subscription's own queue that does not match the selection."""
        if entry is not None:
            consumer.queue.accept(entry)
            consumer.settled()

    def _with_offset(self, message: Message, offset: int) -> bytes:
        """Return the rest of the frame of a stream's message; its offset replaces one sent by the publisher."""
        if OFFSET in message.headers:
            header = message.header.edited({}, without=(OFFSET,))
            message = Message(message.exchange, message.routing_key, header, message.body)
        return b"\n%b:%d%b" % (OFFSET.encode(), offset, self._encoder.rest(message, False))

    def _begin(self, message: Message) -> None:
        """Encode the frame up to the number in the message-id."""
        names = message.exchange, message.routing_key
        beginning = self._beginnings.get(names)
        if beginning is None:
            beginning = self._encoder.beginning(self.id, *names) + self._message_ids()
            remember(self._beginnings, names, beginning, _KEPT)
        self._beginning = beginning
        self._exchange, self._routing_key = names

    def _message_ids(self) -> bytes:
        """Return the common beginning of all its message-ids."""
        return self._scope.version.escape(f"{self.tag}@@{self._scope.session}@@").encode()
