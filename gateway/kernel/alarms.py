"""Resources that run low. While any alarm stands, publishers are held back and consumers are not."""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias


class Resource(Enum):
    """What can run low; the value is RabbitMQ's reason in ``connection.blocked``."""

    MEMORY = "low on memory"
    DISK = "low on disk"
    STORE = "the store cannot write"


AlarmListener: TypeAlias = Callable[[], None]


class Alarms:
    """The alarms that stand, and who is told when the first is raised and the last is cleared."""

    def __init__(self) -> None:
        self._standing: dict[Resource, str] = {}
        self._listeners: list[AlarmListener] = []

    def __bool__(self) -> bool:
        return bool(self._standing)

    @property
    def standing(self) -> dict[Resource, str]:
        """The resources that are low, each with what was measured."""
        return dict(self._standing)

    @property
    def reason(self) -> str:
        """Why publishers wait, as ``connection.blocked`` tells them."""
        return " & ".join(resource.value for resource in self._standing)

    def subscribe(self, listener: AlarmListener) -> None:
        """Call ``listener`` whenever the set of standing alarms changes."""
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
