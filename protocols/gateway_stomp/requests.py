"""Handlers for each frame of an open connection, by verb; SEND has its own path."""

from collections.abc import Callable
from functools import partial
from typing import Final

from gateway.kernel.budget import PendingWork
from gateway_stomp.conversation import Conversation
from gateway_stomp.frames import Head


def _subscribe(conversation: Conversation, head: Head) -> None:
    queue = conversation.subscribing.subscribe(head.headers)
    conversation.scope.answer(head.receipt)
    queue.dispatch()  # the receipt comes before the first message, as with RabbitMQ


def _unsubscribe(conversation: Conversation, head: Head) -> None:
    conversation.subscribing.unsubscribe(head.headers)
    conversation.scope.answer(head.receipt)


def _ack(conversation: Conversation, head: Head) -> None:
    if head.transaction is not None:
        conversation.transactions.settle(head.transaction, head.verb, head.headers)
    elif head.verb == "ACK":
        conversation.settling.accept(head.headers)
    else:
        conversation.settling.settle(head.verb, head.headers)
    conversation.scope.answer(head.receipt)


def _begin(conversation: Conversation, head: Head) -> None:
    conversation.transactions.begin(head.headers)
    conversation.scope.answer(head.receipt)


def _commit(conversation: Conversation, head: Head) -> None:
    """Commit a transaction. There is no receipt if a queue refused one of its messages."""
    work = conversation.transactions.commit(head)
    work.when_done(partial(_committed, conversation, head))


def _committed(conversation: Conversation, head: Head, work: PendingWork) -> None:
    if not work.is_refused and not conversation.has_left:
        conversation.scope.answer(head.receipt)


def _abort(conversation: Conversation, head: Head) -> None:
    conversation.transactions.abort(head.headers)
    conversation.scope.answer(head.receipt)


def _disconnect(conversation: Conversation, head: Head) -> None:
    conversation.scope.host.disconnect(head.receipt)


#: What each frame of an open connection does.
REQUESTS: Final[dict[str, Callable[[Conversation, Head], None]]] = {
    "SUBSCRIBE": _subscribe,
    "UNSUBSCRIBE": _unsubscribe,
    "ACK": _ack,
    "NACK": _ack,
    "BEGIN": _begin,
    "COMMIT": _commit,
    "ABORT": _abort,
    "DISCONNECT": _disconnect,
}
