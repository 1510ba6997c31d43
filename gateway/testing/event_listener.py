"""The contract of ``gateway.api.EventListener`` as a check for any event listener. No broker runs."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.kernel.events import Event
from gateway.kernel.plugin_times import CALL_LIMIT_S
from gateway.kernel.vhosts.event_listeners import EventListener, ObservedVhost
from gateway.testing.call_timer import CallTimer, is_slower
from gateway.testing.tracer import StandInVhost

#: Names of events; others may follow in later versions.
NAMES: Final = (
    "connection.created",
    "connection.closed",
    "user.authentication.failure",
    "queue.created",
    "binding.created",
    "policy.set",
    "alarm.set",
    "fault.contained",
    "plugin.enabled",
    "unknown.event",
)

#: Details of events; a listener must not rely on any.
DETAILS: Final[tuple[Mapping[str, object], ...]] = (
    {},
    {"user": "guest", "port": 5672, "arguments": {"x-max-length": 1}, "client_properties": None},
    {"error": "Ä\n\x00", "tags": ["a", b"\xff"], "n": 2**70, "f": float("nan")},
)


class StandInObservedVhost(StandInVhost):
    """Stands in for the virtual host of an event listener. ``provided`` are the exchanges that it creates."""

    def __init__(self, name: str = "/", node: str = "gateway@test") -> None:
        super().__init__(name, node)
        self.provided: list[str] = []

    def provide_exchange(self, name: str) -> None:
        """Keep the name of an exchange."""
        self.provided.append(name)

    def is_bound(self, exchange: str) -> bool:
        """Return that a queue is bound, so that the listener publishes."""
        return True


def check_event_listener(make: Callable[[ObservedVhost], EventListener]) -> None:
    """Check an event listener with events of many kinds.

    :param make: returns the listener of a virtual host, as ``gateway_event_listeners`` does. It must not publish before
        the first event.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    vhost = StandInObservedVhost()
    listener = make(vhost)
    if vhost.published:
        raise AssertionError("The listener published a message before the first event.")
    for name in NAMES:
        for subject in ("", "guest", "Ä" * 300):
            for details in DETAILS:
                for place in ("", "/", "other") if listener.all_vhosts else ("", "/"):
                    _tell(listener, Event(name, place, subject, dict(details)))


def _tell(listener: EventListener, event: Event) -> None:
    before = (event.name, event.vhost, event.subject, repr(event.details))
    timer = CallTimer()
    try:
        answer: object = listener.on_event(event)  # type: ignore[func-returns-value]
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(
            f"on_event() raised {error!r} for the event {event.name!r} with {event.details}."
        ) from error
    if is_slower(lambda: listener.on_event(event), timer.seconds, CALL_LIMIT_S):
        raise AssertionError(f"on_event() takes longer than {CALL_LIMIT_S * 1e3:g} ms for the event {event.name!r}.")
    if answer is not None:
        raise AssertionError(f"on_event() returned {answer!r}; a listener returns nothing.")
    if (event.name, event.vhost, event.subject, repr(event.details)) != before:
        raise AssertionError(f"The listener modified the event {event.name!r}.")
