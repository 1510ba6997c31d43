"""The host of a plugin's feature in a queue: calls its methods, and contains its faults."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.budget import SLOW_S, WORK_PER_CLOCK_READING
from gateway.kernel.faults import BadAnswer, shown
from gateway.kernel.features.plugin_feature import FeatureQueue, PluginFeature, QueueFeatureType
from gateway.kernel.interception.publish_chain import InterceptionContext
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.plugin_times import CALL_LIMIT_S, CallTime, Overrun
from gateway.kernel.queueing.feature import QueueFeature, Rejection

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
    from gateway.kernel.queueing.queue import Queue

#: The kind of the faults of queue features.
FAULT: Final = "queue feature"

#: The method of ``PluginFeature`` for each method of ``QueueFeature`` that a plugin may act in.
_METHODS: Final = {
    "arrives": "on_enqueue",
    "enqueued": "on_ready",
    "due": "on_deliver",
    "settled": "on_settle",
    "returning": "on_requeue",
    "dropped": "on_drop",
}


class HostedFeature(QueueFeature):
    """One feature of a plugin in one queue. ``values`` are the settings that the feature was made with.

    ``time`` is that of the calls of all features of its type.

    :raises BadAnswer: if the factory does not return a ``PluginFeature``; what the factory raises passes, too.
    """

    def __init__(
        self,
        type: QueueFeatureType,
        queue: "Queue",
        values: dict[str, Value],
        context: InterceptionContext,
        time: CallTime,
        earlier: "HostedFeature | None" = None,
    ) -> None:
        self.type = type
        self.values = values
        self._time = time
        self._queue_name = queue.name
        self._context = context
        self._view = FeatureQueue(queue, values, self._call_timed)
        made = type.make(self._view)
        if not isinstance(made, PluginFeature):
            raise BadAnswer(f"make() returned {shown(made)}, which is not a QueueFeature")
        self._feature: PluginFeature = made
        if earlier is not None:
            self._ask(made.inherit, earlier._feature)

    def overrides(self, method: str) -> bool:
        """Return whether the plugin's feature overrides the method that stands for this one."""
        name = _METHODS.get(method)
        return name is not None and getattr(type(self._feature), name) is not getattr(PluginFeature, name)

    def detached(self) -> None:
        """End the feature."""
        self._view.end()
        self._ask(self._feature.close)

    def arrives(self, message: Message) -> Rejection | DeathReason | None:
        """Return the decision of the feature; accept the message if it fails."""
        decision = self._ask(self._feature.on_enqueue, message)
        if isinstance(decision, Rejection):
            return decision
        return self._reason(decision, "on_enqueue")

    def enqueued(self, entry: "QueuedMessage") -> None:
        """Tell the feature that a message waits."""
        self._ask(self._feature.on_ready, entry)

    def due(self, entry: "QueuedMessage") -> DeathReason | None:
        """Return why the feature drops a message that is about to be delivered."""
        return self._reason(self._ask(self._feature.on_deliver, entry), "on_deliver")

    def settled(self, entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """Tell the feature how a delivery was settled."""
        self._ask(self._feature.on_settle, entry, outcome)

    def returning(self, entry: "QueuedMessage") -> DeathReason | None:
        """Return why the feature drops a message that is about to be requeued."""
        return self._reason(self._ask(self._feature.on_requeue, entry), "on_requeue")

    def dropped(self, message: Message, reason: DeathReason) -> None:
        """Tell the feature that a message was dropped."""
        self._ask(self._feature.on_drop, message, reason)

    def _call_timed(self, call: Callable[[], object]) -> None:
        self._ask(call)

    def _reason(self, answer: object, method: str) -> DeathReason | None:
        """Return an answer if it is a reason; report any other than ``None``."""
        if answer is None or isinstance(answer, DeathReason):
            return answer
        self._contain(BadAnswer(f"{method}() returned {shown(answer)}, which is not a decision"))
        return None

    def _ask(self, method: Callable[..., object], *values: object) -> object:
        """Call a method; return its answer, or ``None`` if it raises. A slow call is reported."""
        budget = self._context.budget
        budget.work += WORK_PER_CLOCK_READING  # a feature may take milliseconds for a message
        starts_s = budget.monotonic_s()
        try:
            answer = method(*values)
        except BaseException as error:  # a plugin's exception must not reach the publisher or the consumer
            self._contain(error)
            return None
        took_s = budget.monotonic_s() - starts_s
        self._time.add(took_s)
        if took_s > SLOW_S:
            context = self._context
            what = f"the queue feature {type(self._feature).__qualname__} of '{self._queue_name}'"
            budget.on_slow(context.faults.cause(what, context.vhost_name, self.type), took_s)
            if took_s > CALL_LIMIT_S:
                self._contain(Overrun(took_s), method)
        return answer

    def _contain(self, error: BaseException, function: Callable[..., object] | None = None) -> None:
        context, name = self._context, type(self._feature).__qualname__
        faults = context.faults
        faults.contain_in_part(FAULT, error, context.vhost_name, self.type, self._queue_name, name, function)
