"""The queues of direct reply-to in one virtual host."""

from typing import TYPE_CHECKING

from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike

if TYPE_CHECKING:
    from gateway.kernel.interception.interception import Interception
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.routing.router import Router


class DirectReplyQueues:
    """Opens and closes the queues of direct reply-to, which are reachable through the default exchange only."""

    def __init__(
        self,
        vhost_name: str,
        by_name: dict[str, QueueLike],
        journal: "Journal",
        router: "Router",
        interception: "Interception",
    ) -> None:
        self.by_name = by_name
        self._vhost_name = vhost_name
        self._journal = journal
        self._router = router
        self._interception = interception

    def open(self, name: str) -> Queue:
        """Create the queue of one consumer."""
        queue = Queue(self._vhost_name, name, self._journal)
        self._interception.watch(queue)
        self.by_name[name] = queue
        self._router.forget()
        return queue

    def close(self, queue: QueueLike) -> None:
        """Remove a queue."""
        del self.by_name[queue.name]
        self._router.forget()
