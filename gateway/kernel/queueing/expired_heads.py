"""The removal of many expired messages from the head of a queue, for a client that fetches the first live one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue import Queue


def drop_expired_steps(queue: "Queue") -> Iterator[None]:
    """Return the steps that discard the expired messages at the head."""
    while queue.ready.length:
        head = queue.ready.peek()
        if head is None or not queue.drops.discard_if_expired(head):
            return
        yield
