"""Temporary queues: exclusive queues for replies, under ids that the client chooses."""

from typing import Final, Protocol

from gateway.kernel.queueing.queue_like import QueueLike
from gateway_stomp.destinations import DestinationKind
from gateway_stomp.endpoints import Endpoints
from gateway_stomp.scope import Scope

PREFIX: Final = f"{DestinationKind.TEMP_QUEUE.value}/"
"""Prefix of the ids of subscriptions to temporary queues; a client's own ids must not begin with it."""


class ReplySubscriber(Protocol):
    """The consumer of replies."""

    def receive_replies(self, id: str, queue: QueueLike) -> None:
        """Consume from a queue under this id, without acknowledgements."""
        ...


class ReplyQueues:
    """Owns the temporary queues of one connection: id to the queue's name."""

    __slots__ = ("_endpoints", "_name_by_id", "_scope", "_subscriber")

    def __init__(self, scope: Scope, endpoints: Endpoints, subscriber: ReplySubscriber) -> None:
        self._scope = scope
        self._endpoints = endpoints
        self._subscriber = subscriber
        self._name_by_id: dict[str, str] = {}

    def address(self, reply_to: str) -> str:
        """Return the reply-to of the message. A temporary queue is declared if necessary and replaced by its real name.

        :raises StompError: when the destination is invalid.
        """
        if not reply_to.startswith("/"):
            return reply_to
        destination = self._scope.destination(reply_to)
        if destination.kind is not DestinationKind.TEMP_QUEUE:
            return reply_to
        name = self._name_by_id.get(destination.name)
        if name is None:
            queue = self._endpoints.reply_queue()
            name = self._name_by_id[destination.name] = queue.name
            self._subscriber.receive_replies(PREFIX + destination.name, queue)
        return name
