"""Messages that wait before they take part: as their publisher asked (``x-delay``), or between two tries."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.bounds import LONGEST_MS
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue

#: More digits than any delay has.
_MOST_DIGITS: Final = 18


def delay_ms(message: Message) -> int:
    """Return for how long the publisher wants a message held back; 0 for not at all.

    What is not a positive number of milliseconds, or more than ten years, is no delay: so it is with RabbitMQ's plugin,
    whose header this is. It may be written in digits: clients of MQTT and STOMP have no numbers in headers.
    """
    delay = message.headers.get("x-delay")
    if isinstance(delay, str) and delay.isascii() and delay.isdigit() and len(delay) <= _MOST_DIGITS:
        delay = int(delay)
    if isinstance(delay, bool) or not isinstance(delay, int):
        return 0
    return delay if 0 < delay <= LONGEST_MS else 0


def delaying(queue: "Queue", context: "FeatureContext") -> "Delaying | None":
    """Return the feature, if the queue's settings call for delays of either kind."""
    delays_arrivals = queue.settings.is_on("delayed-delivery")
    retry_delays = queue.settings.value("retry-delays")
    retries = tuple(delay for delay in retry_delays if isinstance(delay, int)) if isinstance(retry_delays, list) else ()
    if not (delays_arrivals or retries):
        return None
    return Delaying(context.clock, delays_arrivals=delays_arrivals, retry_delays_ms=retries)


class Delaying(QueueFeature):
    """Holds back what arrives with a delay, and what is rejected while there are tries left.

    What is held back comes at its time whether or not the queue still has the feature then.
    The n-th of ``retry_delays_ms`` follows the n-th time a message comes back; after the last a rejection is final.
    ``release`` is what happens to a message when its time has come; unless given, its queue takes it in.
    """

    def __init__(
        self,
        clock: "Clock",
        *,
        delays_arrivals: bool,
        retry_delays_ms: tuple[int, ...] = (),
        release: "Callable[[QueuedMessage], DeathReason | None] | None" = None,
    ) -> None:
        self._clock = clock
        self._delays_arrivals = delays_arrivals
        self._retry_delays_ms = retry_delays_ms
        self._release = release

    def fitted(self, queue: "Queue") -> None:
        """Say what happens to messages whose time has come, before recovery brings some."""
        queue.holding_back(self._release)

    def diverts(self, queue: "Queue", message: Message) -> bool:
        """Hold a message back that asks for it."""
        if not self._delays_arrivals or not (delay := delay_ms(message)):
            return False
        due_at_ms = self._clock.wall_ms() + delay
        queue.holding_back().hold(message, due_at_ms)
        return True

    def retries(self, queue: "Queue", entry: "QueuedMessage") -> bool:
        """Hold a rejected message back until its next try."""
        if entry.deliveries >= len(self._retry_delays_ms):
            return False
        due_at_ms = self._clock.wall_ms() + self._retry_delays_ms[entry.deliveries]
        queue.holding_back().hold_again(entry, due_at_ms)
        return True
