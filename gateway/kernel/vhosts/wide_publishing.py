"""Publishes to very many queues of a virtual host, which take several turns."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from gateway.kernel.archives.archives import Archives
from gateway.kernel.archives.message_observer import MessageObserver
from gateway.kernel.budget import WORK_PER_CLOCK_READING, PendingWork
from gateway.kernel.routing.exchange import Route
from gateway.kernel.routing.router import Router, Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout
from gateway.kernel.traffic import VhostTraffic
from gateway.kernel.vhosts.verdict import REFUSED, TAKEN, UNDECIDED, Verdict

if TYPE_CHECKING:
    from typing import Protocol

    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.queue_like import QueueLike

    class Observed(Protocol):
        """The virtual host whose publishes are traced and archived, while these are in use."""

        tracing: MessageObserver | None
        archiving: Archives | None


class Unobserved:
    """A deleted virtual host: nothing is traced or archived."""

    tracing: MessageObserver | None = None
    archiving: Archives | None = None


class WidePublishing:
    """Publishes messages to very many queues in slices.

    ``offer`` offers a message to a queue and returns whether it was taken.
    """

    def __init__(
        self,
        vhost: "Observed",
        journal: "Journal",
        router: Router,
        traffic: VhostTraffic,
        offer: "Callable[[QueueLike, Message], bool]",
    ) -> None:
        self._vhost: Observed = vhost
        self._journal = journal
        self._router = router
        self._traffic = traffic
        self._offer = offer

    def publish(self, found: Route | Walk, message: "Message", origin: "Origin | None") -> Verdict:
        """Make the first offers in this turn, the others in later ones, for which the ``origin``'s connection waits.

        If the route is not known yet, the turn has copied very many destinations already.
        """
        fanout = self.fanout_of(found, message, origin)
        background = self._journal.clock.background
        self._journal.budget.work += WORK_PER_CLOCK_READING  # a slice takes milliseconds
        (background.add if isinstance(found, Route) else background.add_later)(fanout.steps())
        if origin is not None:
            self._journal.budget.leave_rest_pending(fanout)
        if fanout.is_done:
            return REFUSED if fanout.is_refused else TAKEN
        return UNDECIDED if isinstance(found, Walk) and not found.has_queue else TAKEN

    def work_of(self, message: "Message") -> PendingWork | None:
        """Return the work that offers the message of the last publish in later turns; ``None`` if all have it.

        Something that the publish has merely caused may be pending instead, such as a publish by one of its receivers.
        """
        work = self._journal.budget.pending
        return work if isinstance(work, SlicedFanout) and work.published is message else None

    def when_unrouted(self, call: Callable[[], None]) -> None:
        """Call if the message whose publish was ``UNDECIDED`` just now turns out to have no route."""
        work = self._journal.budget.pending
        assert work is not None
        work.when_done(lambda done: call() if done.is_unrouted else None)

    def release(self) -> None:
        """Release the virtual host and its callback: it was deleted."""
        self._vhost = Unobserved()
        self._offer = lambda queue, message: False

    def fanout_of(self, found: Route | Walk, message: "Message", origin: "Origin | None" = None) -> SlicedFanout:
        """Count a message, and return its offers to the queues of a route, for ``Background``."""
        tracing, archiving = self._vhost.tracing, self._vhost.archiving
        trace = None if tracing is None else partial(_traced, tracing, origin)
        traffic = self._traffic.published_by("" if origin is None else origin.protocol)
        traffic.count(len(message.body))
        fanout = SlicedFanout(found, message, self._journal, self._router, self._offer, traffic, trace)
        if archiving is not None:
            fanout.when_done(lambda _: archiving.published(fanout.archives, fanout.message, origin))
        return fanout


def _traced(
    tracing: MessageObserver, origin: "Origin | None", message: "Message", queues: "tuple[QueueLike, ...]"
) -> "Message":
    return tracing.published(message, queues, origin)
