"""A plugin with an exchange type, and an interceptor that judges what is published to exchanges of this type."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

from gateway.api import (
    Arguments,
    Binding,
    Decision,
    Destination,
    Diversion,
    ExchangeFactory,
    Interceptor,
    Message,
    Origin,
    Refusal,
    hookimpl,
)
from gateway.simulation.plugins.moods import PluginMood, PluginMoods

#: The exchange type, and the beginning of the names of its exchanges.
EXCHANGE_TYPE: Final = "x-simulated"
EXCHANGES: Final = "routing-"


class RoutedOutcome(Enum):
    """The outcome of a message: the plugin, or the broker in its place, must have decided this."""

    REFUSED = auto()
    DIVERTED = auto()
    ROUTED = auto()
    UNROUTED = auto()


class _ExchangeType:
    """Routes to all bindings with the routing key. Its faults make a message unroutable, except what it found."""

    def __init__(self, moods: PluginMoods, outcomes: dict[bytes, RoutedOutcome]) -> None:
        self._moods = moods
        self._outcomes = outcomes
        self._bindings: dict[str, list[Binding]] = defaultdict(list)

    def bind(self, binding: Binding) -> None:
        self._bindings[binding.routing_key].append(binding)

    def unbind(self, binding: Binding) -> None:
        self._bindings[binding.routing_key].remove(binding)

    def route(self, message: Message) -> Iterable[Destination]:
        found: list[Any] = [binding.destination for binding in self._bindings[message.routing_key]]
        mood = self._moods.next("route")
        is_nonsense = mood is PluginMood.ANSWERS_NONSENSE
        if mood is PluginMood.RAISES or (is_nonsense and len(message.body) % 2):
            found.clear()  # else what it found is valid, beside the nonsense
        if self._outcomes.get(message.body) is not RoutedOutcome.REFUSED:  # else the broker is wrong to ask
            self._outcomes[message.body] = RoutedOutcome.ROUTED if found else RoutedOutcome.UNROUTED
        if mood is PluginMood.RAISES:
            raise self._moods.failure()
        return [*found, self._moods.nonsense()] if is_nonsense else found


class _Judge(Interceptor):
    """Refuses, diverts or passes messages for the exchanges; its faults refuse them."""

    on_error = "refuse"

    def __init__(self, moods: PluginMoods, outcomes: dict[bytes, RoutedOutcome]) -> None:
        self._moods = moods
        self._outcomes = outcomes

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        if not message.exchange.startswith(EXCHANGES):
            return message
        mood = self._moods.next("interceptor")
        if mood in (PluginMood.RAISES, PluginMood.ANSWERS_NONSENSE):
            self._outcomes[message.body] = RoutedOutcome.REFUSED
        if mood is PluginMood.RAISES:
            raise self._moods.failure()
        if mood is PluginMood.ANSWERS_NONSENSE:
            return self._moods.nonsense() or Diversion("no-such-exchange", "")
        return self._decision(message)

    def _decision(self, message: Message) -> Decision:
        """Return a valid decision, which the routing key asks for."""
        match message.routing_key:
            case "refuse":
                self._outcomes[message.body] = RoutedOutcome.REFUSED
                return Refusal("the key asks for it")
            case "divert":
                self._outcomes[message.body] = RoutedOutcome.DIVERTED
                return Diversion("", f"{message.exchange}.diverted")
            case _:
                return message


class RoutingPlugin:
    """The exchange type and the interceptor. ``outcomes`` has what they decided, by the body of the message."""

    def __init__(self, moods: PluginMoods, outcomes: dict[bytes, RoutedOutcome]) -> None:
        self._moods = moods
        self._outcomes = outcomes

    @hookimpl
    def gateway_exchange_types(self) -> Mapping[str, ExchangeFactory]:
        """Offer the exchange type."""

        def make(arguments: Arguments) -> _ExchangeType:
            return _ExchangeType(self._moods, self._outcomes)

        return {EXCHANGE_TYPE: make}

    @hookimpl
    def gateway_interceptors(self) -> Sequence[Interceptor]:
        """Offer the interceptor."""
        return (_Judge(self._moods, self._outcomes),)
