"""The event listeners of plugins, which observe connections, logins, topology, policies, users and alarms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.budget import SLOW_S
from gateway.kernel.events import Event
from gateway.kernel.faults import Faults
from gateway.kernel.plugin_times import CallTime, PartTimes
from gateway.kernel.slow_calls import SlowCalls

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Properties

#: The kind of the faults of listeners.
FAULT: Final = "plugin event listener"


class EventListener(Protocol):
    """Observes the events of one virtual host and of the node; created per virtual host.

    ``all_vhosts`` asks for the events of the other virtual hosts too.
    """

    all_vhosts: bool = False

    def on_event(self, event: Event) -> None:
        """Observe an event, immediately after the change that it reports. Must not wait.

        An exception is contained, counted and logged; it affects neither the event nor other listeners. Events that the
        call itself causes are not passed to listeners.
        """
        ...


class ObservedVhost(Protocol):
    """The virtual host as an event listener sees it: names, publishing, and an exchange to publish to."""

    @property
    def name(self) -> str:
        """The name of the virtual host."""
        ...

    @property
    def node(self) -> str:
        """The name of the node it runs on."""
        ...

    def publish(self, exchange: str, routing_key: str, properties: "Properties", body: bytes) -> None:
        """Publish a message of the broker itself: unconfirmed, not intercepted or traced, dropped without a queue."""
        ...

    def provide_exchange(self, name: str) -> None:
        """Create an internal topic exchange, unless it exists: clients bind to it, and cannot publish to it."""
        ...

    def is_bound(self, exchange: str) -> bool:
        """Return whether anything is bound to an exchange."""
        ...


class EventListeners:
    """The listeners of all virtual hosts of one node; ``pass_on`` subscribes to the node's events.

    ``is_needed``: some listener or observer wants events. Each login asks five times, so it is no property.
    """

    def __init__(self, faults: Faults, slow_calls: SlowCalls) -> None:
        self._faults = faults
        self._slow_calls = slow_calls
        self._monotonic_s = slow_calls.budget.monotonic_s
        self._times_by_vhost: dict[str, PartTimes] = {}
        self._listeners_by_vhost: dict[str, tuple[EventListener, ...]] = {}
        self._observers: tuple[Callable[[Event], None], ...] = ()
        self._is_passing = False
        self.is_needed = False

    def use(self, vhost: str, listeners: Sequence[EventListener]) -> None:
        """Use these listeners for all later events, instead of earlier ones of the virtual host."""
        if listeners:
            self._listeners_by_vhost[vhost] = tuple(listeners)
            self._times_by_vhost[vhost] = PartTimes(listeners)
        else:
            self._times_by_vhost.pop(vhost, None)
            self._listeners_by_vhost.pop(vhost, None)
        self._update()

    def observe(self, observer: Callable[[Event], None]) -> None:
        """Pass every later event to ``observer`` of the node itself, which must not raise."""
        self._observers = (*self._observers, observer)
        self._update()

    def forget(self, observer: Callable[[Event], None]) -> None:
        """Pass no more events to an observer."""
        self._observers = tuple(each for each in self._observers if each != observer)
        self._update()

    def _update(self) -> None:
        self.is_needed = bool(self._listeners_by_vhost or self._observers)

    def want(self, kind: str) -> bool:
        """Return whether any of them wants events of a kind: one that exists wants all."""
        return self.is_needed

    @property
    def by_vhost(self) -> Mapping[str, Sequence[EventListener]]:
        """The listeners by virtual host."""
        return self._listeners_by_vhost

    def times_in(self, vhost: str) -> Iterable[tuple[object, CallTime]]:
        """Return the listeners of a virtual host with the times of their calls."""
        return self._times_by_vhost.get(vhost, ())

    def pass_on(self, event: Event) -> None:
        """Pass an event to the observers, and to the listeners that may see it."""
        for observer in self._observers:
            observer(event)
        if not self._listeners_by_vhost or self._is_passing:
            return
        self._is_passing = True
        try:
            for vhost, listeners in tuple(self._listeners_by_vhost.items()):
                for listener in listeners:
                    if event.vhost in ("", vhost) or listener.all_vhosts:
                        self._tell(vhost, listener, event)
        finally:
            self._is_passing = False

    def _tell(self, vhost: str, listener: EventListener, event: Event) -> None:
        starts_s = self._monotonic_s()
        try:
            listener.on_event(event)
        except BaseException as error:  # a plugin's exception must not undo what the event reports
            self._faults.contain_in_part(FAULT, error, vhost, listener)
        seconds = self._monotonic_s() - starts_s
        self._times_by_vhost[vhost].of(listener).add(seconds)
        if seconds > SLOW_S:
            what = f"the event listener {type(listener).__qualname__} for the event {event.name}"
            self._slow_calls.took(seconds, what, vhost, listener, FAULT, listener.on_event)
