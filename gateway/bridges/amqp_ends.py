"""AMQP 0-9-1 as the source and the destination of a bridge."""

from collections.abc import Callable, Mapping
from typing import Any

from pika.exceptions import ChannelClosedByBroker, NackError
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from gateway.bridges.amqp_connection import AmqpConnection, ended
from gateway.bridges.link import Lost, reason_of
from gateway.bridges.parcel import Parcel
from gateway.kernel.messages.message import Value

_NOT_FOUND = 404


class AmqpEnd:
    """A connection with one channel. ``lost`` is called with the reason when either ends."""

    def __init__(self, connection: AmqpConnection, channel: Any, lost: Lost) -> None:
        self.connection = connection
        self.channel = channel
        self._lost = lost
        self._is_closed = False
        ended(connection, self._ended)
        channel.on_closed.addBoth(lambda result: self._ended(getattr(result, "value", result)))

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        self._is_closed = True
        self.connection.leave()

    def _ended(self, error: BaseException | None) -> None:
        if not self._is_closed:
            self.close()
            self._lost(reason_of(error))


class AmqpSource(AmqpEnd):
    """Consumes from one queue."""

    def __init__(self, connection: AmqpConnection, channel: Any, lost: Lost, queue: str, no_ack: bool) -> None:
        super().__init__(connection, channel, lost)
        self._queue = queue
        self._no_ack = no_ack
        self.consumer_arguments: Mapping[str, Value] = {}
        self.consumer_tag: str | None = None
        self._receive: Callable[[Parcel], None] = lambda parcel: None

    def start(self, receive: Callable[[Parcel], None]) -> None:
        """Begin to call ``receive`` with each message."""
        self._receive = receive
        consuming: Deferred[None] = Deferred.fromCoroutine(self._consume())
        consuming.addErrback(self.consuming_failed)

    def consuming_failed(self, failure: Failure) -> None:
        """End the link: the consumer was cancelled, or the channel ended."""
        self._ended(failure.value)

    async def _consume(self) -> None:
        arguments = dict(self.consumer_arguments) or None
        deliveries, _ = await self.channel.basic_consume(
            self._queue, auto_ack=self._no_ack, consumer_tag=self.consumer_tag, arguments=arguments
        )
        while not self._is_closed:
            received = await deliveries.get()
            method = received.method
            self._receive(
                Parcel(
                    method.delivery_tag,
                    method.exchange,
                    method.routing_key,
                    received.properties,
                    received.body,
                    method.redelivered,
                )
            )

    def accept(self, tag: int) -> None:
        """Settle a message."""
        if not self._no_ack and self.channel.is_open:
            self.channel.basic_ack(tag)

    def requeue(self, tag: int) -> None:
        """Return a message to its queue."""
        if self.channel.is_open:
            self.channel.basic_nack(tag, requeue=True)

    def pause(self, is_paused: bool) -> None:
        """Stop receiving, or continue."""
        self.connection.pause(is_paused)


class AmqpDestination(AmqpEnd):
    """Publishes. ``is_blocked`` while the broker asks for it by ``connection.blocked``, or does not read."""

    def __init__(self, connection: AmqpConnection, channel: Any, lost: Lost) -> None:
        super().__init__(connection, channel, lost)
        self.on_ready: Callable[[], None] = lambda: None
        self._is_refusing = False
        self._is_full = False
        wire = channel.connection
        wire.add_on_connection_blocked_callback(lambda *_: self._refuses(True))
        wire.add_on_connection_unblocked_callback(lambda *_: self._refuses(False))
        connection.transport.registerProducer(self, True)

    @property
    def is_blocked(self) -> bool:
        """Whether it accepts no messages for now."""
        return self._is_refusing or self._is_full

    def publish(self, parcel: Parcel, done: Callable[[bool], None]) -> None:
        """Send a message; see ``MessageDestination``. Without confirms, ``done`` is called at once."""
        if not self.channel.is_open:
            return
        sent = self.channel.basic_publish(parcel.exchange, parcel.routing_key, parcel.body, parcel.properties)
        sent.addCallbacks(lambda _: done(True), lambda failure: self._unconfirmed(failure, done))

    def _unconfirmed(self, failure: Failure, done: Callable[[bool], None]) -> None:
        """Report a refusal; when the channel has ended, the link ends too, and the source keeps the message."""
        if isinstance(failure.value, NackError):
            done(False)

    def _refuses(self, is_refusing: bool) -> None:
        self._is_refusing = is_refusing
        if not self.is_blocked:
            self.on_ready()

    # Called by the transport

    def pauseProducing(self) -> None:
        """Stop: the peer does not read."""
        self._is_full = True

    def resumeProducing(self) -> None:
        """Continue: the peer has read."""
        self._is_full = False
        if not self.is_blocked:
            self.on_ready()

    def stopProducing(self) -> None:
        """Do nothing: the connection ends."""


async def ensure_queue(
    connection: AmqpConnection,
    queue: str,
    arguments: Mapping[str, Value],
    passive: bool,
    *,
    is_durable: bool = True,
) -> int:
    """Declare a queue unless it exists, whatever its properties; return the number of its messages.

    ``passive`` does not declare it. :raises ChannelClosedByBroker: with the reason of the broker.
    """
    channel = await connection.open_channel()
    try:
        declared = await channel.queue_declare(queue, passive=True)
    except ChannelClosedByBroker as refusal:
        if refusal.reply_code != _NOT_FOUND or passive:
            raise
        channel = await connection.open_channel()
        declared = await channel.queue_declare(queue, durable=is_durable, arguments=dict(arguments) or None)
    channel.close()
    return int(declared.method.message_count)
