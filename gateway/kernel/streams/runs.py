"""Delivery of several messages of a stream at once.

A separate module, which is not compiled, because mypyc has no runtime-checkable protocols.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import Consumer


@runtime_checkable
class RunSubscriber(Protocol):
    """A subscriber that takes several messages of a stream at once; any other gets them singly."""

    def deliver_run(self, consumer: "Consumer", run: "Sequence[QueuedMessage]") -> None:
        """Deliver messages that are to be settled later; the ``position`` of each is its offset."""
        ...
