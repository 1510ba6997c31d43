"""Events about the entities of the broker, for listings, metrics and logs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from gateway.kernel.acting import ActingUser


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``name`` is RabbitMQ's (``queue.created``), ``vhost`` is empty for events outside a virtual host.

    ``user`` performed the action; it is empty if the broker did.
    """

    name: str
    vhost: str = ""
    subject: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    user: str = ""


Listener: TypeAlias = Callable[[Event], None]


class _Subscription(NamedTuple):
    """A listener, the kinds of events it listens to, all if there are none, and its answer to ``is_awaited``."""

    listener: Listener
    kinds: tuple[str, ...]
    wants: Callable[[str], bool] | None


class Events:
    """Passes each event to its listeners, in the order of their subscriptions. Not for messages: those have tracers.

    The kind of an event is the first word of its name: ``vhost`` of ``vhost.deleted``. ``on_fault`` is called with
    exceptions of listeners. ``acting`` tells the user of events.
    """

    def __init__(self) -> None:
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._subscribed_by_kind: dict[str, tuple[_Subscription, ...]] = {}
        self.on_fault: Callable[[Exception], None] | None = None
        self.acting = ActingUser()

    def subscribe(self, listener: Listener, *kinds: str, wants: Callable[[str], bool] | None = None) -> None:
        """Call ``listener`` with each later event of these kinds; of every kind if none is named.

        ``wants`` returns whether events of a kind are of use to the listener at this moment. Without it they are.
        """
        self._subscriptions = (*self._subscriptions, _Subscription(listener, kinds, wants))
        self._subscribed_by_kind.clear()

    def is_awaited(self, kind: str) -> bool:
        """Return whether a listener has a use for events of a kind. If not, a frequent one need not be emitted."""
        return any(each.wants is None or each.wants(kind) for each in self._subscribed(kind))

    def _subscribed(self, kind: str) -> tuple[_Subscription, ...]:
        found = self._subscribed_by_kind.get(kind)
        if found is None:
            found = tuple(each for each in self._subscriptions if not each.kinds or kind in each.kinds)
            self._subscribed_by_kind[kind] = found
        return found

    def emit(self, event: Event) -> None:
        """Call the listeners of the event's kind; an exception in one does not affect the others."""
        if self.acting.source is not None and not event.user:
            event = Event(event.name, event.vhost, event.subject, event.details, self.acting.name)
        for each in self._subscribed(event.name.partition(".")[0]):
            try:
                each.listener(event)
            except Exception as error:  # a listener's fault must not undo the change it reports
                if self.on_fault is None:
                    raise
                self.on_fault(error)
