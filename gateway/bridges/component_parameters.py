"""The parameters of one component, followed while their bridges run."""

from collections.abc import Callable

from gateway.kernel.broker.broker import Broker
from gateway.kernel.events import Event
from gateway.kernel.journal.records.topology import ParameterRecord

BridgeKey = tuple[str, str]
"""Virtual host and name."""


class ComponentParameters:
    """Calls ``on_set`` with each parameter of a component that exists or is set, from ``start`` to ``stop``.

    ``on_cleared`` is called with the key of each that is cleared.
    """

    def __init__(
        self,
        broker: Broker,
        component: str,
        on_set: Callable[[ParameterRecord], None],
        on_cleared: Callable[[BridgeKey], None],
    ) -> None:
        self._broker = broker
        self._component = component
        self._on_set = on_set
        self._on_cleared = on_cleared
        self._is_running = False
        broker.events.subscribe(self._changed, "parameter")

    def start(self) -> None:
        """Begin with the stored parameters."""
        self._is_running = True
        for record in list(self._broker.parameters.values()):
            if record.component == self._component:
                self._on_set(record)

    def stop(self) -> None:
        """Ignore changes from now on."""
        self._is_running = False

    def _changed(self, event: Event) -> None:
        if not self._is_running or event.details.get("component") != self._component:
            return
        if event.name == "parameter.set":
            self._on_set(self._broker.parameters[event.vhost, self._component, event.subject])
        elif event.name == "parameter.cleared":
            self._on_cleared((event.vhost, event.subject))
