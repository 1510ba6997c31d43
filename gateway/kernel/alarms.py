"""Resource alarms. While any alarm is raised, publishers are blocked and consumers are not."""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from gateway.kernel.events import Event


class Resource(Enum):
    """A resource that can run low; the value is RabbitMQ's reason in ``connection.blocked``."""

    MEMORY = "low on memory"
    DISK = "low on disk"
    STORE = "the store cannot write"


AlarmListener: TypeAlias = Callable[[], None]


class Alarms:
    """The raised alarms; listeners are called whenever the set changes, then ``emit`` with an event."""

    def __init__(self) -> None:
        self._standing: dict[Resource, str] = {}
        self._listeners: list[AlarmListener] = []
        self.emit: Callable[[Event], None] = lambda event: None

    def __bool__(self) -> bool:
        return bool(self._standing)

    @property
    def standing(self) -> dict[Resource, str]:
        """The resources that are low, each with the measured values."""
        return dict(self._standing)

    @property
    def reason(self) -> str:
        """The reason for blocking publishers, as ``connection.blocked`` reports it."""
        return " & ".join(resource.value for resource in self._standing)

    def subscribe(self, listener: AlarmListener) -> None:
        """Call ``listener`` whenever the set of raised alarms changes."""
        self._listeners.append(listener)

    def set(self, resource: Resource, is_low: bool, detail: str = "") -> None:
        """Raise the alarm of a resource, or clear it."""
        if is_low == (resource in self._standing):
            return
        if is_low:
            self._standing[resource] = detail
        else:
            del self._standing[resource]
        for listener in self._listeners:
            listener()
        self.emit(Event("alarm.set" if is_low else "alarm.cleared", "", resource.name.lower(), {"detail": detail}))
