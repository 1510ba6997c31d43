"""Events about the entities of the broker, for listings, metrics and logs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

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


class Events:
    """Passes each event to every listener, in order. Not for messages: those have tracers.

    ``on_fault`` is called with exceptions of listeners. ``acting`` tells the user of events.
    """

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.on_fault: Callable[[Exception], None] | None = None
        self.acting = ActingUser()

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with each later event."""
        self._listeners = (*self._listeners, listener)

    def emit(self, event: Event) -> None:
        """Call every listener; an exception in one does not affect the others."""
        if self.acting.source is not None and not event.user:
            event = Event(event.name, event.vhost, event.subject, event.details, self.acting.name)
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # a listener's fault must not undo the change it reports
                if self.on_fault is None:
                    raise
                self.on_fault(error)
