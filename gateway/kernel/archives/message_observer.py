"""The port through which the messages of one virtual host are observed: by tracers, by trace events, or by both."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue_identity import QueueIdentity


class MessageObserver:
    """Is told of the publishes and deliveries of one virtual host, and may replace the message that is enqueued."""

    def published(self, message: "Message", queues: "tuple[QueueIdentity, ...]", origin: "Origin | None") -> "Message":
        """Report a publish and its queues; return the message to enqueue."""
        raise NotImplementedError

    def delivered(
        self,
        message: "Message",
        queue: "QueueIdentity",
        redelivered: bool,
        origin: "Origin",
        entry: "QueuedMessage | None",
    ) -> None:
        """Report a delivery that was written; ``entry`` is ``None`` if the delivery needs no settling."""
        raise NotImplementedError
