"""Many messages of a stream at once, on their way to a consumer.

A module of its own, which is not compiled: mypyc has no protocols that are looked at when the program runs.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import Consumer


@runtime_checkable
class RunSubscriber(Protocol):
    """A subscriber that takes messages of a stream many at a time; any other gets them one by one."""

    def deliver_run(self, consumer: "Consumer", run: "Sequence[QueuedMessage]") -> None:
        """Hand messages over that are to be settled later; the ``position`` of each is its offset."""
        ...
