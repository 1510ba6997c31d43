"""Direct reply-to: a channel receives replies under a generated name, without declaring a queue."""

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Header
from gateway.kernel.names import REPLY_TO
from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer
from gateway.kernel.queueing.queue import Queue
from gateway_amqp.header import AMQP
from gateway_amqp.properties import splice_property
from gateway_amqp.scope import Scope
from gateway_amqp.tables import encode_short_text


class DirectReplyTo:
    """The reply queue of one channel, if it has one."""

    __slots__ = ("_queue", "_scope")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._queue: Queue | None = None

    def open(self, no_ack: bool) -> Queue:
        """Return a new reply queue.

        :raises PreconditionFailed: when its consumer would have to acknowledge, or the channel has a reply queue
            already.
        """
        if self._queue is not None:
            raise PreconditionFailed("reply consumer already set")
        if not no_ack:
            raise PreconditionFailed("reply consumer cannot acknowledge")
        name = f"{REPLY_TO}.{self._scope.token()}"
        self._queue = self._scope.vhost.reply_queues.open(name)
        return self._queue

    def close(self, queue: ConsumedQueue) -> bool:
        """Close the reply queue if it is this one; return whether it was."""
        if queue is not self._queue:
            return False
        self.abandon()
        return True

    def is_consumed_by(self, consumer: Consumer) -> bool:
        """Return whether this is the consumer of replies, which no prefetch limit applies to."""
        return consumer.queue is self._queue

    def abandon(self) -> None:
        """Close the reply queue, if there is one."""
        if self._queue is not None:
            self._scope.vhost.reply_queues.close(self._queue)
            self._queue = None

    def with_reply_address(self, header: Header) -> Header:
        """Return the header of a request with the generated name in ``reply_to``.

        :raises PreconditionFailed: when the channel has no reply queue.
        """
        if self._queue is None:
            raise PreconditionFailed("fast reply consumer does not exist")
        return AMQP.header(splice_property(header.raw, "reply_to", encode_short_text(self._queue.name)))
