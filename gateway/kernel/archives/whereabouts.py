"""The present places of a traced message, found from its events."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.kernel.archives.departures import Departures, TracedPlace

if TYPE_CHECKING:
    from gateway.kernel.archives.message_trace import MessageTrace, TraceEvent

#: What can happen to all messages of a place, by the state in which they are concerned.
_DEPARTURES: Final = {
    "ready": ("purged", "queue deleted"),
    "unsettled": ("queue deleted",),
    "delayed": ("cancelled", "queue deleted", "exchange deleted"),
}


class Whereabouts(NamedTuple):
    """The state of a message in a queue, or in an exchange that delays or drops messages."""

    queue: str
    exchange: str
    state: str


def whereabouts(trace: "MessageTrace", departures: Departures, has_queue: Callable[[str], bool]) -> list[Whereabouts]:
    """Return where a message is now: each queue that it reached, with its state there.

    States are ``ready``, ``unsettled``, ``delayed``, ``consumed``, ``delivered`` (without acknowledgement),
    ``rejected``, the reason of a drop, ``refused`` (by an interceptor), ``purged``, ``cancelled``, ``queue deleted``
    and ``exchange deleted``. Without any queue and exchange it is the reason of the drop.
    """
    last_by_place: dict[TracedPlace, tuple[str, TraceEvent]] = {}
    for event in trace.events:
        place = TracedPlace(event.queue, "" if event.queue else event.exchange)
        state = _state_after(event)
        if event.kind == "due" and not event.queue:
            last_by_place.pop(place, None)  # the exchange routes the message, as the next events tell
        elif state:
            last_by_place[TracedPlace() if event.kind == "refuse" else place] = state, event
    found = []
    for place, (state, event) in last_by_place.items():
        if (words := _DEPARTURES.get(state)) is not None:
            gone = departures.word_for(place, words, event.position or 0, event.at_ms)
            state = gone or ("queue deleted" if place.queue and not has_queue(place.queue) else state)
        found.append(Whereabouts(place.queue, place.exchange, state))
    return found


def _state_after(event: "TraceEvent") -> str:
    """Return the state of a message after an event; "" if the event does not tell."""
    match event.kind:
        case "enqueue" | "requeue" | "due":
            return "ready"
        case "delay":
            return "delayed"
        case "deliver":
            return "delivered" if event.position is None else "unsettled"
        case "settle":
            return "consumed" if event.detail == "accepted" else event.detail
        case "expire" | "drop":
            return event.detail
        case "refuse":
            return "refused"
    return ""
