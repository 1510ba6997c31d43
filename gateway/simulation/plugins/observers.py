"""A plugin that observes all messages and events, and whose faults must change nothing for anyone."""

from collections.abc import Sequence
from typing import Any

from gateway.api import Decision, Event, EventListener, Interceptor, Message, Origin, Tracer, hookimpl
from gateway.simulation.plugins.moods import LISTENER, PluginMood, PluginMoods


class _Reader(Interceptor):
    """Passes each message on unchanged, as the broker does when it fails."""

    on_error = "pass"

    def __init__(self, moods: PluginMoods) -> None:
        self._moods = moods

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        decision: Decision = self._answer(message)
        return decision

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        answer: Message = self._answer(message)
        return answer

    def _answer(self, message: Message) -> Any:  # Any: nonsense is of any type
        match self._moods.next("interceptor"):
            case PluginMood.RAISES:
                raise self._moods.failure()
            case PluginMood.ANSWERS_NONSENSE:
                return self._moods.nonsense()
            case _:
                return message


class _Tracer:
    """Observes publishes and deliveries."""

    def __init__(self, moods: PluginMoods) -> None:
        self._moods = moods

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        self._observe("tracer")

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        self._observe("tracer")

    def _observe(self, kind: str) -> None:
        if self._moods.next(kind, answers=False) is PluginMood.RAISES:
            raise self._moods.failure()


class _Listener(EventListener):
    """Observes the events of all virtual hosts."""

    all_vhosts = True

    def __init__(self, moods: PluginMoods) -> None:
        self._moods = moods

    def on_event(self, event: Event) -> None:
        if self._moods.next(LISTENER, answers=False) is PluginMood.RAISES:
            raise self._moods.failure()


class ObservingPlugin:
    """An interceptor, a tracer and an event listener."""

    def __init__(self, moods: PluginMoods) -> None:
        self._moods = moods

    @hookimpl
    def gateway_interceptors(self) -> Sequence[Interceptor]:
        """Offer the interceptor."""
        return (_Reader(self._moods),)

    @hookimpl
    def gateway_tracers(self) -> Sequence[Tracer]:
        """Offer the tracer."""
        return (_Tracer(self._moods),)

    @hookimpl
    def gateway_event_listeners(self) -> Sequence[EventListener]:
        """Offer the event listener."""
        return (_Listener(self._moods),)
