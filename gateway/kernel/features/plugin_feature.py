"""The interface of queue features that plugins supply: their settings, their queue, and the methods to override."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.errors import ConfigurationError
from gateway.kernel.messages.bounds import LONGEST_NAME
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message, Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.feature import Rejection
from gateway.kernel.settings.effective_settings import UNPREFIXED
from gateway.kernel.settings.offered_settings import NO_OFFERED_SETTINGS, OfferedSettings, QueueSetting
from gateway.kernel.settings.policy_checks import KEYS, OBSOLETE
from gateway.kernel.settings.queue_arguments import QUEUE_ARGUMENTS

if TYPE_CHECKING:
    from gateway.kernel.clock import Timer
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue

Guard: TypeAlias = Callable[[Callable[[], object]], None]
"""Makes a call of the plugin, and contains its exception."""


class FeatureQueue:
    """A queue as a feature of a plugin sees it. ``settings`` has the feature's own settings that are set, by key.

    The counts are those of this moment. ``ready`` messages wait, ``unsettled`` ones were delivered and not settled.
    """

    def __init__(self, queue: "Queue", settings: Mapping[str, Value], guard: Guard) -> None:
        self.settings = settings
        self._queue = queue
        self._guard = guard
        self._timers: set[Timer] = set()
        self._is_ended = False

    @property
    def vhost(self) -> str:
        """The name of the virtual host."""
        return self._queue.vhost_name

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self._queue.name

    @property
    def arguments(self) -> Arguments:
        """All arguments of its declaration."""
        return self._queue.arguments

    @property
    def ready(self) -> int:
        """The number of messages that wait."""
        return len(self._queue)

    @property
    def unsettled(self) -> int:
        """The number of messages that were delivered and not settled yet."""
        return self._queue.unsettled

    @property
    def consumers(self) -> int:
        """The number of consumers."""
        return self._queue.consumer_count

    @property
    def oldest(self) -> "QueuedMessage | None":
        """The message that is next, or ``None``. Reading it may take a disk access."""
        return self._queue.ready.peek() if len(self._queue) else None

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""
        return self._queue.clock.wall_ms()

    def drop_oldest(self, reason: DeathReason) -> bool:
        """Drop the message that is next, and dead-letter it for this reason; return whether there was one.

        A call of the feature should drop a few messages only, and set a timer for the others.
        """
        if self._is_ended or self.oldest is None:
            return False
        self._queue.drops.discard(self._queue.ready.popleft(), reason)
        return True

    def call_later(self, delay_s: float, call: Callable[[], object]) -> "Timer":
        """Call once, on the kernel's thread, no earlier than ``delay_s`` seconds from now.

        The end of the feature cancels it. An exception is contained like that of a method.
        """

        def expire() -> None:
            self._timers.discard(timer)
            if not self._is_ended:
                self._guard(call)

        timer = self._queue.clock.call_later(delay_s, expire)
        if self._is_ended:
            timer.cancel()
        else:
            self._timers.add(timer)
        return timer

    def end(self) -> None:
        """Cancel all timers: the broker calls it when the feature ends."""
        self._is_ended = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


class PluginFeature:
    """A feature of one queue; a plugin derives from it and overrides the methods it needs.

    The others are not called and cost nothing. All are called on the kernel's thread and must not block. They take
    messages to read; a message is never modified. An exception or an invalid result is contained, counted and logged,
    and the message goes on as without the feature.
    """

    def inherit(self, earlier: "PluginFeature") -> None:
        """Take over the state of the object that this one replaces in its queue.

        Called before all other methods, when the setting changes or the plugin gets a new version or new settings;
        ``earlier`` is closed after it, and may be of another version of the class.
        """

    def on_enqueue(self, message: Message) -> "Rejection | DeathReason | None":
        """Return ``None`` to accept an arriving message, a ``DeathReason`` to drop it, or a ``Rejection``.

        Called once for each message that arrives and that the queue has room for. A dropped message is dead-lettered,
        and its publisher gets a confirm. A rejected one is not; its publisher gets a negative confirm, as from a full
        queue.
        """
        return None

    def on_ready(self, message: "QueuedMessage") -> None:
        """Called when a message waits: it was accepted and no consumer takes it at once, or it was requeued.

        Not called for messages that a restart restores.
        """

    def on_deliver(self, message: "QueuedMessage") -> "DeathReason | None":
        """Return a reason to drop a message that has waited and is about to be delivered, or ``None``.

        May be called several times for a message. Not called for a message that a consumer takes when it arrives.
        """
        return None

    def on_settle(self, message: "QueuedMessage", outcome: DeliveryOutcome) -> None:
        """Called when a delivery is settled: consumed, requeued or rejected."""

    def on_requeue(self, message: "QueuedMessage") -> "DeathReason | None":
        """Return a reason to drop a message that is about to be requeued, or ``None``; called after ``on_settle``."""
        return None

    def on_drop(self, message: Message, reason: DeathReason) -> None:
        """Called when a message was dropped: it expired, exceeded a limit, was rejected, or a feature dropped it."""

    def close(self) -> None:
        """Called when the feature ends: its queue is deleted or lost the setting, or the plugin is disabled.

        Timers of the queue are cancelled already. Not called when the broker stops.
        """


#: The longest name of a setting in bytes, so that the name of its argument is valid.
_LONGEST_NAME: Final = LONGEST_NAME - len("x-")

FeatureFactory: TypeAlias = Callable[[FeatureQueue], PluginFeature]
"""Makes the feature of one queue that has at least one of its settings, all valid."""


@dataclass(frozen=True, slots=True, eq=False)
class QueueFeatureType:
    """A queue feature that a plugin offers: its ``settings`` by policy key, and the factory of its objects.

    The queue argument of the setting ``acme-limit`` is ``x-acme-limit``.

    :raises ConfigurationError: if it has no setting, or one of the broker, or one with an invalid name.
    """

    settings: Mapping[str, QueueSetting]
    make: FeatureFactory

    def __post_init__(self) -> None:
        if not self.settings:
            raise ConfigurationError("a queue feature needs at least one setting")
        for name, setting in self.settings.items():
            if not isinstance(name, str) or not name or name.startswith("x-") or len(name.encode()) > _LONGEST_NAME:
                raise ConfigurationError(
                    f"{name!r} is no name of a setting: it must be a text without the prefix 'x-', "
                    f"of at most {_LONGEST_NAME} bytes"
                )
            if is_built_in(name):
                raise ConfigurationError(f"the setting {name!r} belongs to the broker itself")
            if not isinstance(setting, QueueSetting):
                raise ConfigurationError(f"the setting {name!r} must be a QueueSetting, not {setting!r}")


def is_built_in(name: str) -> bool:
    """Return whether a setting is one of the broker, or accepted without effect as in RabbitMQ."""
    return name in KEYS or name in OBSOLETE or name in UNPREFIXED or f"x-{name}" in QUEUE_ARGUMENTS


def settings_of(
    types: Sequence[QueueFeatureType], on_error: Callable[[QueueFeatureType, BaseException], None]
) -> OfferedSettings:
    """Return the settings of these types; ``on_error`` is called with the type whose check of a value failed."""
    if not types:
        return NO_OFFERED_SETTINGS
    type_by_name = {name: each for each in types for name in each.settings}
    return OfferedSettings(
        {name: each.settings[name] for name, each in type_by_name.items()},
        lambda name, error: on_error(type_by_name[name], error),
    )
