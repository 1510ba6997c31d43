"""The tracing of one virtual host: plugin tracers, the trace table and the traces in memory."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from gateway.kernel.archives.message_observer import MessageObserver
from gateway.kernel.archives.tracer import names_of
from gateway.kernel.budget import SLOW_S, WORK_PER_CLOCK_READING
from gateway.kernel.faults import Faults
from gateway.kernel.messages.message import Message
from gateway.kernel.plugin_times import PartTimes
from gateway.kernel.slow_calls import SlowCalls

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.archives.tracer import Tracer
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue_identity import QueueIdentity


#: Calls of this length or more make the turn read its clock, in seconds.
_NOTABLE_S: Final = 20e-6


class VhostTracing(MessageObserver):
    """Passes publishes and deliveries of one virtual host to its tracers and its trace events.

    An exception in a tracer does not affect the message: ``faults`` contain it. Tracers of plugins are called while
    ``tells_tracers``, those that an operator added always, the trace events while they are on. ``part_times`` has the
    times of each tracer of a plugin.
    """

    def __init__(
        self,
        vhost_name: str,
        tracers: "Sequence[Tracer]",
        trace_events: "TraceEvents",
        faults: Faults,
        slow_calls: SlowCalls,
    ) -> None:
        self.tells_tracers = True
        self._vhost_name = vhost_name
        self._events = trace_events
        self._faults = faults
        self._slow_calls = slow_calls
        self._budget = slow_calls.budget
        self._monotonic_s = slow_calls.budget.monotonic_s
        self._added: tuple[Tracer, ...] = ()
        self.use(tracers)

    def use(self, tracers: "Sequence[Tracer]") -> None:
        """Replace the tracers."""
        self._tracers = tuple(tracers)
        self.part_times = PartTimes(tracers)

    def add(self, tracer: "Tracer") -> None:
        """Add a tracer that no plugin supplies."""
        self._added = (*self._added, tracer)

    def remove(self, tracer: "Tracer") -> None:
        """Remove an added tracer."""
        self._added = tuple(each for each in self._added if each is not tracer)

    @property
    def in_use(self) -> MessageObserver | None:
        """Return itself, the trace events alone if no tracer is active, or ``None`` if nothing is recorded."""
        if self.tells_tracers or self._added:
            return self
        return self._events if self._events.is_on else None

    def published(self, message: Message, queues: "tuple[QueueIdentity, ...]", origin: "Origin | None") -> Message:
        """Report a publish and its queues; return the message to enqueue.

        Messages without an ``origin``, such as copies that tracers publish, are not passed to tracers.
        """
        if origin is not None and (self.tells_tracers or self._added):
            self._tell_published(message, names_of(queues), origin)
        return self._events.published(message, queues, origin)

    def delivered(
        self,
        message: Message,
        queue: "QueueIdentity",
        redelivered: bool,
        origin: "Origin",
        entry: "QueuedMessage | None",
    ) -> None:
        """Report a delivery that was written; ``entry`` is ``None`` if the delivery needs no settling."""
        if self.tells_tracers or self._added:
            self._tell_delivered(message, queue.name, redelivered, origin)
        if self._events.is_on:
            self._events.delivered(message, queue, redelivered, origin, entry)

    # The closures are in functions of their own: a compiled function that has one allocates an object at each call.

    def _tell_published(self, message: Message, queues: "Sequence[str]", origin: "Origin") -> None:
        self._tell("published", lambda tracer: tracer.published(message, queues, origin))

    def _tell_delivered(self, message: Message, queue: str, redelivered: bool, origin: "Origin") -> None:
        self._tell("delivered", lambda tracer: tracer.delivered(message, queue, redelivered, origin))

    def _tell(self, method: str, tell: "Callable[[Tracer], None]") -> None:
        if self.tells_tracers:
            for tracer in self._tracers:
                self._call_timed(tracer, method, tell)
        for tracer in self._added:
            self._call_safely(tracer, tell)

    def _call_safely(self, tracer: "Tracer", tell: "Callable[[Tracer], None]") -> None:
        try:
            tell(tracer)
        except BaseException as error:  # a plugin's exception must not reach the publisher
            self._contain(tracer, error)

    def _call_timed(self, tracer: "Tracer", method: str, tell: "Callable[[Tracer], None]") -> None:
        starts_s = self._monotonic_s()
        error: BaseException | None = None
        try:
            tell(tracer)
        except BaseException as raised:  # a plugin's exception must not reach the publisher
            error = raised
        seconds = self._monotonic_s() - starts_s
        if error is not None:  # event listeners may take long with the report, which is not the tracer's time
            self._contain(tracer, error)
            error = None  # its traceback refers to this frame: the cycle would keep the connection in memory
        self.part_times.of(tracer).add(seconds)
        if seconds > _NOTABLE_S:  # a tracer may take milliseconds for a message
            self._budget.work += WORK_PER_CLOCK_READING
        if seconds > SLOW_S:
            what = f"{method}() of the tracer {type(tracer).__qualname__}"
            self._slow_calls.took(seconds, what, self._vhost_name, tracer, "tracer", getattr(tracer, method))

    def _contain(self, tracer: "Tracer", error: BaseException) -> None:
        self._faults.contain_in_part("tracer", error, self._vhost_name, tracer)
