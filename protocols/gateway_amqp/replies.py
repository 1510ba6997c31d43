"""Direct reply-to: a channel that asks waits for answers under a name of its own, without declaring a queue."""

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Header
from gateway.kernel.names import REPLY_TO
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.queue import Queue
from gateway_amqp.header import AMQP
from gateway_amqp.properties import splice_property
from gateway_amqp.scope import Scope
from gateway_amqp.tables import encode_short_text


class DirectReplyTo:
    """The place where one channel receives replies, if it asked for one."""

    __slots__ = ("_queue", "_scope")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._queue: Queue | None = None

    def open(self, no_ack: bool) -> Queue:
        """Return the new place for replies.

        :raises PreconditionFailed: when replies would have to be acknowledged, or there is a place already.
        """
        if self._queue is not None:
            raise PreconditionFailed("reply consumer already set")
        if not no_ack:
            raise PreconditionFailed("reply consumer cannot acknowledge")
        name = f"{REPLY_TO}.{self._scope.token()}"
        self._queue = self._scope.vhost.open_reply_queue(name)
        return self._queue

    def close(self, queue: Queue) -> bool:
        """Take the place away if this is it; return whether it was."""
        if queue is not self._queue:
            return False
        self.abandon()
        return True

    def are_received_by(self, consumer: Consumer) -> bool:
        """Whether this is the consumer of replies, which no limit of the channel holds back."""
        return consumer.queue is self._queue

    def abandon(self) -> None:
        """Take the place away, if there is one."""
        if self._queue is not None:
            self._scope.vhost.close_reply_queue(self._queue)
            self._queue = None

    def addressed(self, header: Header) -> Header:
        """Return the header of a request with the real name in ``reply_to``.

        :raises PreconditionFailed: when the channel waits for no replies.
        """
        if self._queue is None:
            raise PreconditionFailed("fast reply consumer does not exist")
        return AMQP.header(splice_property(header.raw, "reply_to", encode_short_text(self._queue.name)))
