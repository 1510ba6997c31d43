"""What happened to the entities of the broker, told to whoever listens: listings, metrics, logs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. ``name`` is RabbitMQ's (``queue.created``), ``vhost`` empty where none is concerned."""

    name: str
    vhost: str = ""
    subject: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


Listener: TypeAlias = Callable[[Event], None]


class Events:
    """Passes each event to every listener, in the order they came. Not for messages: those have tracers.

    ``on_fault`` is called with what a listener raises.
    """

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.on_fault: Callable[[Exception], None] | None = None

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with each event from now on."""
        self._listeners = (*self._listeners, listener)

    def emit(self, event: Event) -> None:
        """Call every listener; one that raises does not keep the others from being called."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # what happened has happened, whoever could not be told
                if self.on_fault is None:
                    raise
                self.on_fault(error)
