"""Events about the entities of the broker, for listings, metrics and logs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``name`` is RabbitMQ's (``queue.created``), ``vhost`` is empty for events outside a virtual host."""

    name: str
    vhost: str = ""
    subject: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


Listener: TypeAlias = Callable[[Event], None]


class Events:
    """Passes each event to every listener, in order. Not for messages: those have tracers.

    ``on_fault`` is called with exceptions of listeners.
    """

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.on_fault: Callable[[Exception], None] | None = None

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with each later event."""
        self._listeners = (*self._listeners, listener)

    def emit(self, event: Event) -> None:
        """Call every listener; an exception in one does not affect the others."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # a listener's fault must not undo the change it reports
                if self.on_fault is None:
                    raise
                self.on_fault(error)
