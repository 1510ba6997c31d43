"""check_exchange_type detects each violation of the contract and names it in its error.

Rules: R147.
"""

import itertools
from collections.abc import Iterable

import pytest

from gateway.api import Arguments, Binding, Destination, ExchangeFactory, Message, PreconditionFailed
from gateway.testing import check_exchange_type
from tests.plugins.fanout import CorrectFanout


class FailsToBeCreated(CorrectFanout):
    def __init__(self, arguments: Arguments) -> None:
        raise KeyError("weight")


class SharesBindingsBetweenExchanges(CorrectFanout):
    shared: list[Binding] = []

    def __init__(self, arguments: Arguments) -> None:
        self.bindings = self.shared


class KeepsUnboundBindings(CorrectFanout):
    def unbind(self, binding: Binding) -> None:
        pass


class UnbindsByDestination(CorrectFanout):
    """Correct for one binding per destination, but unbinding the first loses the second."""

    def unbind(self, binding: Binding) -> None:
        before = len(self.bindings)
        self.bindings = [other for other in self.bindings if other.destination is not binding.destination]
        if len(self.bindings) == before:
            raise ValueError("not bound")


class IndexesByKeyOnly(CorrectFanout):
    """The second binding with a key replaces the first; unbinding either loses both."""

    def __init__(self, arguments: Arguments) -> None:
        self.by_key: dict[str, Binding] = {}

    def bind(self, binding: Binding) -> None:
        self.by_key[binding.routing_key] = binding

    def unbind(self, binding: Binding) -> None:
        del self.by_key[binding.routing_key]

    def route(self, message: Message) -> Iterable[Destination]:
        return [binding.destination for binding in self.by_key.values()]


class FailsForAKey(CorrectFanout):
    def route(self, message: Message) -> Iterable[Destination]:
        message.routing_key.encode("ascii")
        return super().route(message)


class FailsForAHeader(CorrectFanout):
    def route(self, message: Message) -> Iterable[Destination]:
        if message.headers.get("n", 0) > 1 << 31:  # type: ignore[operator]  # the mistake under test
            raise OverflowError
        return super().route(message)


class RefusesWithAWrongError(CorrectFanout):
    def bind(self, binding: Binding) -> None:
        int(binding.routing_key)
        super().bind(binding)


class RefusesEverything(CorrectFanout):
    def bind(self, binding: Binding) -> None:
        raise PreconditionFailed("no")


class KeepsRefusedBindings(CorrectFanout):
    def bind(self, binding: Binding) -> None:
        super().bind(binding)
        if binding.arguments:
            raise PreconditionFailed("no arguments, please")


class RoutesByHeadersDespiteRoutesByKey(CorrectFanout):
    routes_by_key = True

    def route(self, message: Message) -> Iterable[Destination]:
        return super().route(message) if "animal" in message.headers else []


class RoutesByKeyDespiteRoutesByHeaders(CorrectFanout):
    routes_by_headers = True

    def route(self, message: Message) -> Iterable[Destination]:
        return super().route(message) if message.routing_key.startswith("dog") else []


class RoutesInTurnDespiteRoutesByKey(CorrectFanout):
    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.turns = itertools.count()

    def route(self, message: Message) -> Iterable[Destination]:
        return [self.bindings[next(self.turns) % len(self.bindings)].destination] if self.bindings else []


class RoutesByHistoryDespiteRoutesByKey(CorrectFanout):
    routes_by_key = True
    ever_bound = 0

    def bind(self, binding: Binding) -> None:
        super().bind(binding)
        self.ever_bound += 1

    def route(self, message: Message) -> Iterable[Destination]:
        return [self.bindings[self.ever_bound % len(self.bindings)].destination] if self.bindings else []


BROKEN = [
    (FailsToBeCreated, r"The factory raised KeyError\('weight'\) for the arguments \{\}\."),
    (SharesBindingsBetweenExchanges, "which is not bound to it"),
    (KeepsUnboundBindings, "after unbind of the binding to .* routes to destination .*, which is not bound to it"),
    (UnbindsByDestination, r"unbind\(\) raised ValueError\('not bound'\) for the binding to .*, which was bound"),
    (IndexesByKeyOnly, r"unbind\(\) raised KeyError"),
    (FailsForAKey, r"route\(\) raised UnicodeEncodeError"),
    (FailsForAHeader, r"route\(\) raised OverflowError\(\) for the key '' and headers \{'n': 4611686018427387904"),
    (RefusesWithAWrongError, r"bind\(\) raised ValueError.* only PreconditionFailed is allowed"),
    (RefusesEverything, "Every binding was refused"),
    (KeepsRefusedBindings, r"bind\(\) refused the binding to .* but routes to it"),
    (RoutesByHeadersDespiteRoutesByKey, r"but .* one message had the headers \{'animal': 'dog'\}"),
    (RoutesByKeyDespiteRoutesByHeaders, "The type says routes_by_headers, but .* one message had the key 'dog'"),
    (
        RoutesInTurnDespiteRoutesByKey,
        "The type says routes_by_key, but messages with the key '' were routed differently",
    ),
    (RoutesByHistoryDespiteRoutesByKey, "routes after an unbind differently from one that never had the bindings"),
]


def test_a_correct_type_passes() -> None:
    check_exchange_type(CorrectFanout)


@pytest.mark.parametrize(("factory", "sentence"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_type_fails_with_its_violation(factory: ExchangeFactory, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_exchange_type(factory)


def test_the_declare_arguments_are_passed_to_the_factory() -> None:
    seen: list[Arguments] = []

    def factory(arguments: Arguments) -> CorrectFanout:
        seen.append(arguments)
        return CorrectFanout(arguments)

    check_exchange_type(factory, arguments={"hash-header": "user"})
    assert {"hash-header": "user"} in seen
    assert all(arguments == {"hash-header": "user"} for arguments in seen)


def test_a_type_with_restricted_bindings_is_checked_with_the_given_bindings() -> None:
    class OnlyYears(CorrectFanout):
        def bind(self, binding: Binding) -> None:
            if len(binding.routing_key) != 4 or "since" not in binding.arguments:
                raise PreconditionFailed("a year, please")
            super().bind(binding)

    with pytest.raises(AssertionError, match="Every binding was refused"):
        check_exchange_type(OnlyYears)
    check_exchange_type(OnlyYears, binding_keys=["2024", "2025"], binding_arguments=[{"since": 1}, {"since": 2}])
